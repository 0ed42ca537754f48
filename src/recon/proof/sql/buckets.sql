-- Which orders one pass over the whole account compares, and where the buckets of all others begin.
-- A bucket has all rows of a range of order numbers, except of orders that are bound to rows elsewhere.

CREATE TEMP VIEW entries AS
SELECT *, replace(entry_type, '_reversal', '') AS base, base IN ('fee', 'reserve', 'payout', 'bank') AS is_alone
FROM ledger;

CREATE TEMP TABLE twice AS
SELECT entry_id FROM entries GROUP BY entry_id
HAVING count(*) > 1 AND (bool_or(is_alone OR order_no = '') OR min(order_no) <> max(order_no));

CREATE TEMP VIEW named AS
SELECT order_no, transaction_id, '' AS reference_no, '' AS entry_id FROM orders
UNION ALL SELECT order_no, transaction_id, reference_no, '' FROM answers
UNION ALL SELECT order_no, transaction_id, reference_no, entry_id FROM entries WHERE NOT is_alone
UNION ALL SELECT order_no, transaction_id, reference_no, '' FROM settlement
UNION ALL SELECT order_no, transaction_id, '', instruction_id FROM instructions
UNION ALL SELECT order_no, '', '', '' FROM universe;

-- Names of the payouts that we asked for, which belong to no order.
CREATE TEMP TABLE payouts AS
SELECT unnest([request_id, instruction_id, transaction_id, order_no]) AS token FROM instructions WHERE kind = 'payout';

-- What binds orders: names in rows without an order number and of payouts, which only there can tie a reference;
CREATE TEMP TABLE words AS
SELECT DISTINCT token FROM (
    FROM payouts
    UNION ALL
    SELECT unnest([order_no, transaction_id, reference_no, entry_id]) FROM entries
    WHERE base = 'payout' AND EXISTS (FROM payouts) AND (reverses_entry_id <> '' OR order_no IN (FROM payouts)
        OR transaction_id IN (FROM payouts) OR reference_no IN (FROM payouts))
    UNION ALL
    SELECT unnest([transaction_id, reference_no]) FROM answers WHERE order_no = ''
    UNION ALL
    SELECT transaction_id FROM orders WHERE order_no = ''
    UNION ALL
    SELECT unnest([transaction_id, reference_no, entry_id]) FROM entries
    WHERE order_no = '' AND (NOT is_alone AND base <> 'adjustment' OR entry_id IN (FROM twice))
    UNION ALL
    SELECT unnest([transaction_id, reference_no]) FROM settlement WHERE order_no = '' AND entry_type NOT IN ('payout', 'earlier')
    UNION ALL
    SELECT unnest([transaction_id, request_id, instruction_id]) FROM instructions WHERE order_no = ''
    UNION ALL
    -- payments that are named under another order than that of their answer;
    SELECT transaction_id FROM named WHERE order_no <> '' GROUP BY transaction_id HAVING min(order_no) <> max(order_no)
    UNION ALL
    -- numbers of entries and of instructions that several orders have.
    FROM twice
    UNION ALL
    SELECT instruction_id FROM instructions GROUP BY instruction_id HAVING min(order_no) <> max(order_no)
) AS every(token) WHERE token <> '';

CREATE TEMP TABLE bound AS
SELECT DISTINCT order_no FROM (
    SELECT order_no FROM named WHERE order_no IN (FROM words) OR transaction_id IN (FROM words)
        OR reference_no IN (FROM words) OR entry_id IN (FROM words)
    UNION ALL
    -- An entry that may close a group of fees, reserves or payouts; approved write-offs are counted together.
    SELECT order_no FROM entries WHERE base IN ('write_off', 'adjustment')
    UNION ALL
    SELECT order_no FROM entries WHERE entry_id IN (FROM twice)
    UNION ALL
    FROM apart
    UNION ALL
    SELECT ''
);

CREATE TEMP TABLE begins AS
SELECT min(order_no) AS first FROM (
    SELECT order_no, (sum(rows) OVER (ORDER BY order_no) - rows) // $rows_per_bucket AS number
    FROM (SELECT order_no, count(*) AS rows FROM named GROUP BY order_no)
) GROUP BY number ORDER BY first;

CREATE TEMP TABLE first_days AS
SELECT merchant_id, account_id, min(settled_on) AS day FROM settlement
WHERE entry_type <> 'payout' AND (order_no <> '' OR transaction_id <> ''
    OR replace(entry_type, '_reversal', '') NOT IN ('fee', 'reserve', 'adjustment'))
GROUP BY merchant_id, account_id;
