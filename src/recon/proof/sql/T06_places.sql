-- No row is in two sets: the result has as many items as there are rows with a set.
WITH reported AS (
    SELECT source, merchant_id, account_id, currency, sum(items) AS number
    FROM result_items WHERE source <> 'instructions' GROUP BY ALL
    UNION ALL
    SELECT leg.source, m.merchant_id, m.account_id, m.currency, count(*)
    FROM exact m
    CROSS JOIN (SELECT unnest(['orders', 'gateway', 'ledger', 'settlement']) AS source) leg
    WHERE leg.source NOT IN ('ledger', 'settlement') OR leg.source IN (FROM given)
    GROUP BY ALL
),
sides AS (
    SELECT source, merchant_id, account_id, currency, number AS places, 0 AS items FROM reported
    UNION ALL
    SELECT source, merchant_id, account_id, currency, 0, items FROM placed WHERE state IS NOT NULL
)
SELECT
    'T6' AS id, source || ': places = items' AS name, merchant_id, account_id, currency, 'count' AS measure,
    sum(places) AS "left", sum(items) AS "right"
FROM sides
GROUP BY ALL;
