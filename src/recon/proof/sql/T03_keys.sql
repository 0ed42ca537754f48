-- With plain files, whose gateway file is complete, each key in a row has its set.
WITH rows_of_files AS (
    SELECT merchant_id, account_id, order_no FROM 'inputs/orders.parquet'
    UNION ALL SELECT merchant_id, account_id, order_no FROM answers
    UNION ALL SELECT merchant_id, account_id, order_no FROM counted_entries
        WHERE (is_compared OR in_conflict) AND NOT is_payout
    UNION ALL SELECT merchant_id, account_id, order_no FROM counted_instructions WHERE kind <> 'payout'
    UNION ALL SELECT merchant_id, account_id, order_no FROM counted_lines
),
rows_of_sets AS (
    SELECT merchant_id, account_id, order_no FROM result_items WHERE set_kind = 'order' AND source <> 'payouts'
    UNION ALL SELECT merchant_id, account_id, order_no FROM exact
),
named AS (
    SELECT DISTINCT * FROM rows_of_files WHERE NOT EXISTS (FROM given WHERE source = 'universe')
),
in_sets AS (
    SELECT DISTINCT * FROM rows_of_sets WHERE NOT EXISTS (FROM given WHERE source = 'universe')
),
sides AS (
    SELECT merchant_id, account_id, 1 AS is_key, 0 AS has_answer FROM named WHERE order_no <> ''
    UNION ALL
    SELECT merchant_id, account_id, 0, 1 FROM in_sets WHERE order_no <> ''
)
SELECT
    'T3' AS id, 'keys = found + not found + failed' AS name,
    merchant_id, account_id, '' AS currency, 'count' AS measure,
    sum(is_key) AS "left", sum(has_answer) AS "right"
FROM sides
GROUP BY ALL;
