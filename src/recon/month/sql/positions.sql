-- What is open at the close of the day before the month, and at its last close: run after facts.sql.
CREATE OR REPLACE TEMP TABLE closes AS
SELECT 'opening' AS side, before AS day FROM month UNION ALL SELECT 'closing', last FROM month;

-- What the gateway owes, item by item: captured or refunded and not settled, settled and never shown. What batches left
-- and reserves follow one another in time: they are put in from `batches` and `reserve_days` once these are walked through.
CREATE OR REPLACE TEMP TABLE open_items AS
SELECT side, CASE WHEN bool_or(is_fact) THEN 'not_settled' ELSE 'never_shown' END AS what, currency, payment AS key,
    max(order_no) AS order_no, coalesce(max(day) FILTER (is_fact), min(day)) AS since, sum(amount)::BIGINT AS amount
FROM (
    SELECT c.side, f.currency, f.payment, f.order_no, f.event_on AS day, f.amount, true AS is_fact FROM facts f, closes c
    WHERE f.kind IN ('capture', 'refund', 'chargeback', 'won_back') AND NOT f.is_outside AND f.event_on <= c.day
    UNION ALL
    SELECT c.side, l.currency, l.payment, l.order_no, l.settled_on, -l.gross, false FROM lines l, closes c
    WHERE l.base IN ('capture', 'refund', 'chargeback') AND l.counts_on <= c.day)
GROUP BY side, currency, payment HAVING sum(amount) <> 0;

CREATE OR REPLACE TEMP TABLE batches AS
SELECT c.side, l.currency, l.batch_id,
    coalesce(max(l.settled_on) FILTER (l.is_pay_out), max(l.settled_on)) AS settled_on,
    coalesce(sum(l.net) FILTER (NOT l.is_pay_out), 0)::BIGINT AS settled, coalesce(sum(l.net) FILTER (l.is_pay_out), 0)::BIGINT AS paid,
    bool_or(l.is_pay_out) AS is_closed
FROM lines l, closes c WHERE l.counts_on <= c.day
GROUP BY c.side, l.currency, l.batch_id;

CREATE OR REPLACE TEMP TABLE reserve_days AS
SELECT c.side, l.currency, l.settled_on, -sum(l.gross)::BIGINT AS amount
FROM lines l, closes c WHERE l.base = 'reserve' AND l.counts_on <= c.day
GROUP BY c.side, l.currency, l.settled_on;

-- What was paid out and is not at the bank, by the newest night; payouts of one entry are one finding.
CREATE OR REPLACE TEMP TABLE transit_moves AS
-- A payout counts by the day of its line: reported after the close of its month it is no move of that month.
WITH late AS (
    SELECT batch_id, currency, settled_on, min(counts_on) AS counts_on FROM lines
    WHERE is_pay_out AND counts_on <> settled_on GROUP BY ALL
),
own AS (
    SELECT p.*, coalesce(l.counts_on, p.settled_on) AS counts_on
    FROM paid p LEFT JOIN late l USING (batch_id, currency, settled_on)
    WHERE p.is_own AND p.state <> 'OPENING'
),
shared AS (SELECT DISTINCT result_id FROM paid WHERE NOT is_own),
alone AS (SELECT DISTINCT result_id FROM own WHERE result_id NOT IN (FROM shared)),
unknown AS (
    SELECT break_id AS result_id FROM breaks SEMI JOIN newest_night USING (number)
    WHERE break_id NOT IN (SELECT result_id FROM paid)
),
last AS (SELECT result_id, max(booked_on) AS booked_on FROM received GROUP BY result_id)
SELECT 'paid' AS move, result_id AS finding, currency, batch_id, settled_on AS moved_on, counts_on, amount FROM own
UNION ALL
SELECT CASE WHEN amount < 0 THEN 'returned' ELSE 'received' END, result_id, currency, '', booked_on, booked_on, -amount
FROM received WHERE result_id IN (FROM alone) OR result_id IN (FROM unknown)
UNION ALL
SELECT CASE WHEN o.bank_amount < 0 THEN 'returned' ELSE 'received' END, o.result_id, o.currency, o.batch_id, l.booked_on, l.booked_on,
    -o.bank_amount
FROM own o JOIN last l USING (result_id) WHERE o.result_id IN (FROM shared) AND o.bank_amount IS NOT NULL
UNION ALL
SELECT 'kept', e.result_id, e.currency, '', l.booked_on, l.booked_on, -e.amount
FROM explained e JOIN last l USING (result_id)
WHERE e.what IN ('charges', 'exchanged', 'exchanged at a rate', 'allowed by the rate') AND e.result_id IN (FROM alone);

DELETE FROM transit_moves WHERE amount = 0;

CREATE OR REPLACE TEMP TABLE open_transit AS
SELECT m.*, coalesce(s.state, 'BREAK') AS state, coalesce(s.code, 'BANK_RECEIPT_UNKNOWN') AS code
FROM (
    SELECT c.side, m.finding, m.currency, sum(m.amount)::BIGINT AS amount, max(m.batch_id) AS batch_id, min(m.moved_on) AS since
    FROM transit_moves m, closes c WHERE m.counts_on <= c.day
    GROUP BY c.side, m.finding, m.currency HAVING sum(m.amount) <> 0) m
LEFT JOIN (SELECT result_id AS finding, min(state) AS state, min(code) AS code
           FROM paid WHERE is_own AND state <> 'OPENING' GROUP BY result_id) s USING (finding);

-- The ledger: the newest version of each entry, as it moves clearing and reserve account together.
CREATE OR REPLACE TEMP TABLE payments_of AS SELECT payment, max(order_no) AS order_no FROM orders_of GROUP BY payment;

CREATE OR REPLACE TEMP TABLE fact_keys AS
SELECT currency, event_on AS day, amount, batch_id,
    CASE WHEN kind IN ('capture', 'refund', 'chargeback', 'won_back') THEN CASE WHEN order_no <> '' THEN order_no ELSE payment END
         WHEN kind IN ('pay_out', 'payee') THEN 'payouts' WHEN kind = 'adjustment' THEN 'adjustments' ELSE 'fees' END AS key
FROM facts WHERE kind <> 'reserve';

CREATE OR REPLACE TEMP VIEW booked_rows AS
FROM ledger
UNION ALL BY NAME
FROM earlier_ledger
WHERE transaction_id IN (FROM by_earlier) OR order_no IN (SELECT order_no FROM orders_of SEMI JOIN by_earlier USING (payment));

CREATE OR REPLACE TEMP TABLE entries AS
WITH last_reported AS (SELECT entry_id, max(number) AS number FROM booked_rows GROUP BY entry_id),
contents AS (
    SELECT DISTINCT * EXCLUDE (source, line) FROM (FROM booked_rows SEMI JOIN last_reported USING (entry_id, number))
),
newest AS (
    -- Of two contents under one number in one night neither counts.
    FROM contents WHERE entry_id NOT IN (SELECT entry_id FROM contents GROUP BY entry_id HAVING count(*) > 1)
),
-- What the next night with a ledger has no more, though its ledger reaches back to it or it asked about its order, was
-- deleted: it is taken back by the date of that night.
lacked AS (
    SELECT e.*, m.next, m.business_date AS gone_on, m.ledger_since, m.cash_since
    FROM newest e
    ASOF JOIN (SELECT number AS next, * FROM nights WHERE ledger_since IS NOT NULL) m ON e.number < m.next
),
asked AS (
    SELECT DISTINCT number AS next, order_no
    FROM (SELECT number, order_no FROM answers UNION ALL SELECT number, order_no FROM earlier_answers)
    SEMI JOIN (SELECT next AS number, order_no FROM lacked WHERE order_no <> '') USING (number, order_no)
),
deleted AS (
    SELECT l.* EXCLUDE (next, ledger_since, cash_since) REPLACE (
        CASE WHEN ends_with(l.entry_type, '_reversal') THEN replace(l.entry_type, '_reversal', '') ELSE l.entry_type || '_reversal' END AS entry_type)
    FROM lacked l LEFT JOIN asked a USING (next, order_no)
    WHERE CASE WHEN replace(l.entry_type, '_reversal', '') IN ('fee', 'reserve', 'payout') THEN l.booked_at >= l.cash_since
               ELSE l.booked_at >= l.ledger_since OR a.next IS NOT NULL END
),
counted AS (SELECT *, '' AS gone_on FROM newest UNION ALL BY NAME FROM deleted),
named AS (
    SELECT n.entry_id, n.order_no, n.gone_on, n.entry_type, n.booked_at, n.reference_no AS batch_id, replace(n.entry_type, '_reversal', '') AS base,
        CASE WHEN ends_with(n.entry_type, '_reversal') THEN -1 ELSE 1 END AS way,
        CASE WHEN n.transaction_amount IS NOT NULL AND n.transaction_currency <> ''
             THEN n.transaction_currency ELSE n.currency END AS currency,
        coalesce(n.transaction_amount, n.amount) AS amount,
        CASE base WHEN 'fee' THEN 'fees' WHEN 'payout' THEN 'payouts'
            ELSE CASE WHEN n.order_no <> '' THEN n.order_no WHEN base = 'adjustment' THEN 'adjustments'
                      ELSE coalesce(p.order_no, nullif(n.transaction_id, ''), 'entry ' || n.entry_id) END END AS key
    FROM counted n LEFT JOIN payments_of p ON p.payment = nullif(n.transaction_id, '')
),
moved AS (
    SELECT *, way * CASE WHEN base IN ('capture', 'adjustment') THEN amount
                         WHEN base IN ('refund', 'chargeback', 'fee', 'payout') THEN -amount ELSE 0 END AS moves
    FROM named
),
-- A write-off moves towards what the gateway has: it bears no sign of its own.
gaps AS (
    SELECT currency, key, sum(amount) AS gap FROM (
        SELECT currency, key, amount FROM fact_keys UNION ALL SELECT currency, key, -moves FROM moved)
    GROUP BY ALL
)
SELECT m.entry_id, m.order_no, m.entry_type, m.currency, m.key, coalesce(d.business_date, '') AS booked_on,
    coalesce(nullif(m.gone_on, ''), d.business_date, '') AS day,
    m.moves + CASE WHEN m.base = 'write_off' THEN sign(coalesce(g.gap, 0)) * m.way * m.amount ELSE 0 END AS amount, m.batch_id,
    m.way * m.amount AS whole, m.gone_on
FROM moved m
LEFT JOIN gaps g ON g.currency = m.currency AND g.key = m.key
ASOF LEFT JOIN days d ON m.booked_at >= d.opens_at;
