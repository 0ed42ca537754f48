-- Write-offs in the ledger are those that two people approved, in total and per set.
WITH RECURSIVE entries AS (
    SELECT c.merchant_id, c.account_id, c.currency, j.set_id, j.set_key, c.entry_id,
        CASE WHEN c.is_back THEN -c.moved ELSE c.moved END AS amount,
        CASE WHEN b.amount = CASE WHEN c.is_back THEN -c.moved ELSE c.moved END THEN b.amount ELSE 0 END AS before
    FROM counted_entries c
    LEFT JOIN result_items j
        ON j.source = 'ledger'
        AND j.merchant_id = c.merchant_id AND j.account_id = c.account_id AND j.order_no = c.order_no AND j.transaction_id = c.transaction_id AND j.reference_no = c.reference_no AND j.entry_id = c.entry_id AND j.currency = c.currency
    LEFT JOIN 'inputs/agreed.parquet' b ON b.kind = 'entry' AND b.id = c.entry_id AND b.currency = c.currency
    WHERE c.base = 'write_off' AND NOT c.in_conflict
),
sets AS (
    SELECT merchant_id, account_id, currency, set_id, set_key,
        count(*) AS number, sum(amount) AS amount, sum(before) AS before
    FROM entries WHERE set_id IS NOT NULL GROUP BY ALL
),
closed AS (SELECT id FROM 'inputs/known.parquet' WHERE kind = 'closed'),
agreed AS (SELECT id, currency, amount FROM 'inputs/agreed.parquet' WHERE kind = 'break'),
-- The successive breaks of one key: each has an id of its own.
chain AS (
    SELECT merchant_id, account_id, set_key, 1 AS n,
        substr(sha256(concat_ws(chr(31), merchant_id, account_id, set_key, '1')), 1, 16) AS id
    FROM (SELECT DISTINCT merchant_id, account_id, set_key FROM sets)
    UNION ALL
    SELECT merchant_id, account_id, set_key, n + 1,
        substr(sha256(concat_ws(chr(31), merchant_id, account_id, set_key, (n + 1)::VARCHAR)), 1, 16)
    FROM chain WHERE id IN (SELECT id FROM closed) OR id IN (SELECT id FROM agreed)
),
by_people AS (
    SELECT c.merchant_id, c.account_id, c.set_key, a.currency, sum(a.amount) AS amount
    FROM chain c JOIN agreed a USING (id) GROUP BY ALL
),
held AS (
    SELECT s.*, least(s.amount, greatest(s.before + coalesce(p.amount, 0), 0)) AS allowed
    FROM sets s LEFT JOIN by_people p USING (merchant_id, account_id, set_key, currency)
),
sides AS (
    SELECT merchant_id, account_id, currency, 1 AS number, 0 AS fitting, amount, 0 AS allowed FROM entries
    UNION ALL
    SELECT merchant_id, account_id, currency, 0, CASE WHEN amount = allowed THEN number ELSE 0 END, 0, allowed FROM held
),
totals AS (
    SELECT 'write-offs in the ledger = those that two people agreed to' AS name,
        merchant_id, account_id, currency, 'count' AS measure, sum(number) AS "left", sum(fitting) AS "right"
    FROM sides GROUP BY ALL
    UNION ALL
    SELECT 'write-offs in the ledger = those that two people agreed to',
        merchant_id, account_id, currency, 'amount', sum(amount), sum(allowed)
    FROM sides GROUP BY ALL
    UNION ALL
    -- Those that differ one by one, the first fifty.
    FROM (SELECT 'write-off of ' || set_key || ' = agreed', merchant_id, account_id, currency, 'amount', amount, allowed
        FROM held WHERE amount <> allowed ORDER BY ALL LIMIT 50)
)
SELECT 'T10' AS id, * FROM totals
WHERE 'agreed' IN (FROM given) AND 'ledger' IN (FROM given);
