-- Items and money by side and state, as summed by the run, equal the sums in SQL.
WITH sides AS (
    SELECT source, state, merchant_id, account_id, currency, count, amount, 0 AS counted, 0 AS added
    FROM 'results/sides.parquet'
    UNION ALL
    SELECT source, coalesce(state, 'no state'), merchant_id, account_id, currency, 0, 0, items, net FROM placed
)
SELECT
    'T14' AS id, source || ' ' || state || ': items as the night counts them = as SQL does' AS name,
    merchant_id, account_id, currency, 'count' AS measure, sum(count) AS "left", sum(counted) AS "right"
FROM sides GROUP BY ALL
UNION ALL
SELECT
    'T14', source || ' ' || state || ': money as the night adds it up = as SQL does',
    merchant_id, account_id, currency, 'amount', sum(amount), sum(added)
FROM sides GROUP BY ALL;
