-- Paid out less received is in transit, from before the first statement, charged by the bank,
-- exchanged, or the effect of a break.
WITH banks AS (
    SELECT key AS account_currency, label AS bank FROM 'inputs/terms.parquet' WHERE name = 'bank_of'
),
shown AS (
    SELECT result_id, any_value(bank) AS bank FROM (
        SELECT result_id, bank FROM 'results/paid.parquet'
        UNION ALL SELECT result_id, bank FROM 'results/received.parquet'
    ) GROUP BY result_id
),
sides AS (
    SELECT b.bank, p.currency, p.net AS "left", 0 AS "right"
    FROM 'inputs/payouts.parquet' p
    JOIN banks b ON b.account_currency = concat_ws(chr(31), p.merchant_id, p.account_id, p.currency)
    UNION ALL
    SELECT bank, currency, -amount, 0 FROM 'results/received.parquet' WHERE state <> 'WAITING'
    UNION ALL
    SELECT bank, currency, 0, amount FROM 'results/explained.parquet'
    UNION ALL
    SELECT coalesce(s.bank, ''), e.currency, 0, -e.amount
    FROM 'results/effects.parquet' e LEFT JOIN shown s ON s.result_id = e.break_id
    WHERE e.leg = 'bank'
)
SELECT
    'T17' AS id,
    bank || ': paid out - received = in transit + opening + charges + exchanged - effects' AS name,
    '' AS merchant_id, '' AS account_id, currency, 'amount' AS measure,
    sum("left") AS "left", sum("right") AS "right"
FROM sides
GROUP BY bank, currency;
