-- Bank receipts less those booked in the ledger are the effects of breaks and of pending groups.
WITH night AS (
    SELECT key AS merchant_id, label AS account_id FROM 'inputs/terms.parquet' WHERE name = 'bank_night'
),
unknown AS (
    SELECT DISTINCT result_id FROM 'results/received.parquet'
    WHERE state = 'BREAK' AND result_id NOT IN (SELECT result_id FROM 'results/paid.parquet')
),
-- A write-off names its group: by its key, or by one of its batches.
words AS (
    SELECT *, unnest(list_distinct([key] || string_split(name, ' '))) AS token
    FROM 'results/banked.parquet' WHERE contains(flags, 'written_off')
),
named AS (
    SELECT w.merchant_id, w.account_id, w.currency, w.key, w.effect, w.token,
        abs(sum(CASE WHEN c.is_back THEN -c.moved ELSE c.moved END)) AS written
    FROM words w
    LEFT JOIN counted_entries c ON c.merchant_id = w.merchant_id AND c.account_id = w.account_id
        AND c.currency = w.currency AND NOT c.in_conflict AND NOT c.is_closer AND w.token <> ''
        AND (c.base = 'write_off' OR c.base = 'adjustment' AND c.order_no = '')
        AND w.token IN (c.order_no, c.reference_no)
    GROUP BY ALL
),
written_off AS (
    SELECT merchant_id, account_id, currency, key,
        sign(effect) * max(CASE WHEN written = abs(effect) THEN written ELSE 0 END) AS effect
    FROM named GROUP BY merchant_id, account_id, currency, key, named.effect
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
    SELECT merchant_id, account_id, currency, 0, amount FROM 'results/effects.parquet' WHERE leg = 'bank_ledger'
    UNION ALL
    SELECT merchant_id, account_id, currency, 0, effect FROM 'results/banked.parquet'
    WHERE state <> 'BREAK' AND NOT contains(flags, 'written_off')
    UNION ALL
    SELECT merchant_id, account_id, currency, 0, effect FROM written_off
)
SELECT 'T19' AS id, 'bank: arrived - booked = effects' AS name, merchant_id, account_id, currency, 'amount' AS measure,
    sum("left") AS "left", sum("right") AS "right"
FROM sides
WHERE NOT EXISTS (FROM night) OR (merchant_id, account_id) IN (SELECT (merchant_id, account_id) FROM night)
GROUP BY ALL;
