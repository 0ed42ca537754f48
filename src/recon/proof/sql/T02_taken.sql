-- Every input row is an item of a set, a repeat, superseded by a newer row, or outside the sets.
WITH rows_given AS (
    SELECT 'orders' AS source, merchant_id, account_id, count(*) AS number FROM 'inputs/orders.parquet' GROUP BY ALL
    UNION ALL SELECT 'gateway', merchant_id, account_id, count(*) FROM answers GROUP BY ALL
    UNION ALL SELECT 'ledger', merchant_id, account_id, count(*) FROM 'inputs/ledger.parquet' GROUP BY ALL
),
outside AS (
    SELECT 'gateway' AS source, merchant_id, account_id, count(*) AS number
    FROM answers WHERE answer <> 'found' GROUP BY ALL
),
counted AS (
    SELECT 'orders' AS source, merchant_id, account_id, count(*) AS number FROM counted_orders GROUP BY ALL
    UNION ALL SELECT 'gateway', merchant_id, account_id, count(*) FROM counted_answers GROUP BY ALL
    UNION ALL SELECT 'ledger', merchant_id, account_id, count(*) FROM counted_entries GROUP BY ALL
),
-- Items according to the result: those in results/items, and those of the exact sets.
reported AS (
    SELECT source, merchant_id, account_id, sum(items) AS number FROM result_items
    WHERE source IN ('orders', 'gateway', 'ledger') GROUP BY ALL
    UNION ALL
    SELECT leg.source, merchant_id, account_id, count(*) FROM exact
    CROSS JOIN (SELECT unnest(['orders', 'gateway', 'ledger']) AS source) leg
    WHERE leg.source <> 'ledger' OR 'ledger' IN (FROM given)
    GROUP BY ALL
),
sides AS (
    SELECT source, merchant_id, account_id, number AS every, 0 AS parts FROM rows_given
    UNION ALL SELECT source, merchant_id, account_id, 0, number FROM outside
    UNION ALL SELECT source, merchant_id, account_id, 0, number FROM reported
    -- Repeats and superseded rows: input rows less rows that count.
    UNION ALL SELECT source, merchant_id, account_id, 0, number FROM rows_given
    UNION ALL SELECT source, merchant_id, account_id, 0, -number FROM counted
    UNION ALL SELECT source, merchant_id, account_id, 0, -number FROM outside
)
SELECT
    'T2' AS id, source || ' taken: accepted = new + repeat + superseding' AS name,
    merchant_id, account_id, '' AS currency, 'count' AS measure,
    sum(every) AS "left", sum(parts) AS "right"
FROM sides
WHERE source <> 'ledger' OR 'ledger' IN (FROM given)
GROUP BY ALL;
