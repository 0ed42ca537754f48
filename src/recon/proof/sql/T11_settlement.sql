-- The lines of a batch come, less their fees, to its pay-out, where a row names one.
WITH proven AS (
    SELECT * FROM 'inputs/settlement.parquet'
    WHERE batch_id IN (SELECT key FROM 'compared/terms.parquet' WHERE name = 'settled_batch')
       OR NOT EXISTS (FROM 'compared/terms.parquet' WHERE name = 'settled_days')
),
moved AS (
    SELECT *, entry_type = 'payout' AND own_reference = '' AS is_pay_out FROM proven
)
SELECT
    'T11' AS id, 'settlement ' || batch_id || ': gross - fees = pay-out' AS name,
    merchant_id, account_id, currency, 'amount' AS measure,
    coalesce(sum(gross - fee) FILTER (NOT is_pay_out), 0) AS "left",
    coalesce(sum(net) FILTER (is_pay_out), 0) AS "right"
FROM moved
WHERE (merchant_id, batch_id) IN (SELECT (merchant_id, batch_id) FROM moved WHERE is_pay_out)
GROUP BY merchant_id, account_id, currency, batch_id;
