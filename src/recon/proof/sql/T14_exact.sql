-- Sets with the rule `exact` are exact: each covered source has one row for it, plainly paid, of the
-- amount and currency of the match. A row that differs counts as -1.
WITH legs AS (
    SELECT unnest(['orders', 'gateway', 'ledger', 'settlement']) AS source
),
sides AS (
    SELECT l.source, merchant_id, account_id, currency, count(*) AS sets, sum(amount) AS money, 0 AS rows_so, 0 AS money_so
    FROM exact CROSS JOIN legs l
    WHERE l.source NOT IN ('ledger', 'settlement') OR l.source IN (FROM given)
    GROUP BY ALL
    UNION ALL
    SELECT source, merchant_id, account_id, currency, 0, 0, CASE WHEN is_so THEN items ELSE -items END, CASE WHEN is_so THEN net ELSE -net END
    FROM placed WHERE is_exact
)
SELECT
    'T14' AS id, source || ': sets called exact = those that SQL finds exact' AS name,
    merchant_id, account_id, currency, 'count' AS measure, sum(sets) AS "left", sum(rows_so) AS "right"
FROM sides GROUP BY ALL
UNION ALL
SELECT
    'T14', source || ': sets called exact = those that SQL finds exact',
    merchant_id, account_id, currency, 'amount', sum(money), sum(money_so)
FROM sides GROUP BY ALL;
