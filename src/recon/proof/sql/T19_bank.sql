-- What arrived at the bank less what the books have of it is the effects of breaks, and what waits.
WITH night AS (
    SELECT key AS merchant_id, word AS account_id FROM 'compared/terms.parquet' WHERE name = 'bank_night'
),
unknown AS (
    SELECT DISTINCT result_id FROM 'results/received.parquet'
    WHERE state = 'BREAK' AND result_id NOT IN (SELECT result_id FROM 'results/paid.parquet')
),
sides AS (
    SELECT merchant_id, account_id, currency, bank_amount AS "left", 0 AS "right"
    FROM 'results/paid.parquet' WHERE state IN ('MATCHED', 'BREAK') AND bank_amount IS NOT NULL
    UNION ALL
    SELECT b.merchant_id, b.account_id, r.currency, r.amount, 0
    FROM 'results/received.parquet' r
    JOIN unknown USING (result_id)
    JOIN 'results/breaks.parquet' b ON b.break_id = r.result_id
    WHERE b.account_id <> ''
    UNION ALL
    SELECT merchant_id, account_id, currency, CASE WHEN is_back THEN moved ELSE -moved END, 0
    FROM counted_entries WHERE base = 'bank' AND NOT in_conflict
    UNION ALL
    SELECT merchant_id, account_id, currency, 0, amount FROM 'results/effects.parquet' WHERE leg = 'bank_books'
    UNION ALL
    SELECT merchant_id, account_id, currency, 0, effect FROM 'results/banked.parquet' WHERE state <> 'BREAK'
)
SELECT 'T19' AS id, 'bank: arrived - booked = effects' AS name, merchant_id, account_id, currency, 'amount' AS measure,
    sum("left") AS "left", sum("right") AS "right"
FROM sides
WHERE NOT EXISTS (FROM night) OR (merchant_id, account_id) IN (SELECT (merchant_id, account_id) FROM night)
GROUP BY ALL;
