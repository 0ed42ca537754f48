-- Every movement between merchant and gateway with the business date of its own event, from the
-- sealed folders of the nights. Run after asked.sql; each equation is then one SELECT.
--
-- `answers`, `instructions`, `settlement`, `ledger`, `orders`, `terms` are the files of all nights,
-- each row with the `number` of its night; `days` says when each business date opens. `earlier_answers`,
-- `earlier_instructions` and `earlier_ledger` are those of nights before them, numbered below 0: they are asked what was
-- charged back of payments that were won back, and of those that no later night shows what was booked; and, after a
-- close, what they reported of payments that come back.

-- Payments: what each came to by each night that shows it otherwise than the one before --------------
CREATE OR REPLACE TEMP VIEW asked AS
WITH wanted AS (FROM won UNION ALL BY NAME SELECT * EXCLUDE (paid_at) FROM came_back)
FROM answers WHERE answer = 'found'
UNION ALL BY NAME
FROM earlier_answers
WHERE answer = 'found' AND (transaction_id IN (SELECT transaction_id FROM wanted WHERE transaction_id <> '')
    OR order_no IN (SELECT order_no FROM wanted WHERE transaction_id = '' AND order_no <> ''));

-- What each answer says that its payment came to by then.
CREATE OR REPLACE TEMP VIEW came_to AS
SELECT
    number, order_no, transaction_id, currency, transaction_date, queried_at,
    CASE WHEN state IN ('paid', 'partially_refunded', 'refunded', 'chargeback') THEN gross ELSE 0 END AS captured,
    CASE WHEN state = 'refunded' THEN coalesce(refunded_amount, gross)
         WHEN state IN ('paid', 'partially_refunded', 'chargeback') THEN coalesce(refunded_amount, 0)
         ELSE 0 END AS refunded,
    CASE WHEN state = 'chargeback' THEN gross - coalesce(refunded_amount, 0) ELSE 0 END AS charged,
    state = 'partially_refunded' AND refunded_amount IS NULL AS is_unknown
FROM (
    SELECT a.* EXCLUDE (amount), coalesce(t.label, 'unmapped') AS state, coalesce(a.captured_amount, a.amount, 0) AS gross
    FROM asked a LEFT JOIN terms t ON t.number = a.number AND t.name = 'payment_status' AND t.key = a.payment_status);

-- Every night says its whole window once more: each content stands here once, with the first and the last night of it.
CREATE OR REPLACE TEMP TABLE contents AS
SELECT order_no, transaction_id, currency, transaction_date, captured, refunded, charged, is_unknown,
    min(number) AS since, max(number) AS until
FROM came_to GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE pairs AS
SELECT *, row_number() OVER (ORDER BY order_no, transaction_id) AS pair, dense_rank() OVER (ORDER BY payment) AS payment_no
FROM (
    SELECT order_no, transaction_id,
        CASE WHEN transaction_id <> '' THEN transaction_id WHEN order_no <> '' THEN 'order ' || order_no ELSE '' END AS payment
    FROM contents GROUP BY order_no, transaction_id);

CREATE OR REPLACE TEMP TABLE orders_of AS
SELECT order_no, min(payment) AS payment FROM pairs WHERE order_no <> ''
GROUP BY order_no HAVING count(DISTINCT payment) = 1;

CREATE OR REPLACE TEMP TABLE numbered AS
SELECT c.* EXCLUDE (order_no, transaction_id), p.pair, p.payment_no FROM contents c JOIN pairs p USING (order_no, transaction_id);
DROP TABLE contents;

-- Payments of several rows a night, or of contents that do not follow one another, are looked at night by night.
CREATE OR REPLACE TEMP TABLE mixed AS
SELECT DISTINCT payment_no
FROM (SELECT payment_no, pair, since, lag(until) OVER w AS until_before, lag(pair) OVER w AS pair_before
      FROM numbered WINDOW w AS (PARTITION BY payment_no ORDER BY since, until))
WHERE pair <> pair_before OR since <= until_before;
CREATE OR REPLACE TEMP TABLE by_payment AS
WITH night_by_night AS (
    SELECT c.* EXCLUDE (order_no, transaction_id), p.pair, p.payment_no
    FROM came_to c JOIN (FROM pairs SEMI JOIN mixed USING (payment_no)) p USING (order_no, transaction_id)
),
newest AS (
    FROM night_by_night
    QUALIFY row_number() OVER (
        PARTITION BY number, pair
        ORDER BY queried_at DESC NULLS LAST, captured DESC, refunded DESC, charged DESC) = 1
)
SELECT number, payment_no, min(pair) AS pair, max(currency) AS currency, min(transaction_date) AS transaction_date,
    sum(captured)::BIGINT AS captured, sum(refunded)::BIGINT AS refunded, sum(charged)::BIGINT AS charged, bool_or(is_unknown) AS is_unknown
FROM newest GROUP BY number, payment_no
UNION ALL
SELECT since, payment_no, pair, currency, transaction_date, captured, refunded, charged, is_unknown
FROM numbered ANTI JOIN mixed USING (payment_no);

CREATE OR REPLACE TEMP TABLE shown AS
WITH beside AS (
    SELECT *, lag(captured) OVER w AS captured_before, lag(refunded) OVER w AS refunded_before, lag(charged) OVER w AS charged_before
    FROM by_payment WINDOW w AS (PARTITION BY payment_no ORDER BY number)
)
SELECT b.number, n.business_date, p.payment, p.order_no, b.currency, b.transaction_date, b.captured, b.refunded, b.charged
FROM beside b JOIN nights n USING (number) JOIN pairs p USING (pair)
WHERE b.captured IS DISTINCT FROM captured_before OR b.refunded IS DISTINCT FROM refunded_before
    OR b.charged IS DISTINCT FROM charged_before;

-- Earlier nights alone show these: their ledger is that of earlier nights, too.
CREATE OR REPLACE TEMP TABLE by_earlier AS
SELECT DISTINCT payment FROM pairs
SEMI JOIN (SELECT payment_no FROM numbered GROUP BY payment_no HAVING max(until) < 0) USING (payment_no)
WHERE payment <> '';

DROP TABLE numbered;

-- What each came to by now; is_unknown: refunded in part, and nothing at the gateway says how much.
CREATE OR REPLACE TEMP TABLE levels AS
SELECT s.payment, arg_max(s.order_no, s.number) AS order_no, arg_max(s.currency, s.number) AS currency,
    arg_max(s.captured, s.number) AS captured, arg_max(s.refunded, s.number) AS refunded, arg_max(s.charged, s.number) AS charged,
    bool_or(u.payment IS NOT NULL) AS is_unknown
FROM shown s
LEFT JOIN (SELECT p.payment FROM by_payment b JOIN pairs p USING (pair)
           GROUP BY p.payment HAVING arg_max(b.is_unknown, b.number)) u ON u.payment = s.payment
GROUP BY s.payment;
DROP TABLE by_payment;

-- The settlement: what the newest night counts; a batch that it has as sums, as the last night whole, else each line
-- that stood alone in any night with the same sums, and the rest as sums ------------------------------------------
CREATE OR REPLACE TEMP TABLE groups AS
SELECT batch_id, settled_on, currency, number, bool_or(source = 'older files') AS is_summed,
    sum(gross) AS gross, sum(fee) AS fee, sum(net) AS net,
    dense_rank() OVER (ORDER BY batch_id, settled_on, currency) AS batch
FROM settlement GROUP BY batch_id, settled_on, currency, number;

-- Each line once, and the nights that have it: one as often as it has.
CREATE OR REPLACE TEMP TABLE every_line AS
SELECT *, row_number() OVER () AS line
FROM (
    SELECT batch_id, settled_on, entry_type, order_no, transaction_id, reference_no, currency, gross, fee, net, own_reference,
        source = 'older files' AS is_sum, list(number) AS numbers
    FROM settlement GROUP BY ALL)
JOIN (SELECT DISTINCT batch_id, settled_on, currency, batch FROM groups) USING (batch_id, settled_on, currency);

CREATE OR REPLACE TEMP TABLE line_nights AS SELECT line, batch, is_sum, unnest(numbers) AS number FROM every_line;

CREATE OR REPLACE TEMP TABLE chosen AS
SELECT now.batch, now.batch_id, now.settled_on, now.currency,
    coalesce(max(b.number) FILTER (NOT b.is_summed), any_value(now.number)) AS number,
    -- From then on nothing of the batch is news, whichever of its lines stand alone.
    min(b.number) AS batch_reported, bool_and(b.is_summed) AS is_never_whole, list(b.number) AS alike
FROM (FROM groups SEMI JOIN newest_night USING (number)) now
LEFT JOIN groups b ON b.batch = now.batch AND b.gross = now.gross AND b.fee = now.fee AND b.net = now.net
GROUP BY now.batch, now.batch_id, now.settled_on, now.currency;

-- Of batches that no such night had whole: of equal lines the first is place 1, so that each is there once.
CREATE OR REPLACE TEMP TABLE never_whole AS
SELECT e.* EXCLUDE (numbers, line, batch), n.is_newest, n.place
FROM (
    SELECT l.line, l.number = c.number AS is_newest, row_number() OVER (PARTITION BY l.line, l.number) AS place
    FROM line_nights l JOIN chosen c USING (batch)
    WHERE c.is_never_whole AND list_contains(c.alike, l.number)) n
JOIN every_line e USING (line);

CREATE OR REPLACE TEMP TABLE counted AS
WITH alone AS (SELECT DISTINCT * EXCLUDE (is_sum, is_newest) FROM never_whole WHERE NOT is_sum),
sums AS (FROM never_whole WHERE is_sum AND is_newest),
-- The newest night's sums stand for what it has not alone: what another night had alone is taken from them.
taken AS (
    SELECT a.*, CASE WHEN a.entry_type IN ('payout', 'reserve') THEN a.entry_type ELSE 'earlier' END AS kind
    FROM alone a
    WHERE NOT EXISTS (
        FROM never_whole n
        WHERE n.is_newest AND NOT n.is_sum AND n.place = a.place AND n.batch_id = a.batch_id
            AND n.settled_on = a.settled_on AND n.currency = a.currency AND n.entry_type = a.entry_type
            AND n.order_no = a.order_no AND n.transaction_id = a.transaction_id AND n.reference_no = a.reference_no
            AND n.gross = a.gross AND n.fee = a.fee AND n.net = a.net AND n.own_reference = a.own_reference)
),
-- Fees by payment have a sum for each payment; a line without a fee is in the sum of no payment.
named AS (SELECT DISTINCT batch_id, settled_on, currency, entry_type AS kind, order_no, transaction_id FROM sums WHERE fee <> 0),
parts AS (
    SELECT batch_id, settled_on, entry_type, order_no, transaction_id, currency, gross, fee, net, false AS is_taken FROM sums
    UNION ALL
    SELECT t.batch_id, t.settled_on, t.kind,
        CASE WHEN n.kind IS NOT NULL THEN t.order_no ELSE '' END, CASE WHEN n.kind IS NOT NULL THEN t.transaction_id ELSE '' END,
        t.currency, -t.gross, -t.fee, -t.net, true
    FROM taken t
    LEFT JOIN named n
        ON n.batch_id = t.batch_id AND n.settled_on = t.settled_on AND n.currency = t.currency AND n.kind = t.kind
        AND n.order_no = t.order_no AND n.transaction_id = t.transaction_id AND t.fee <> 0
)
SELECT s.batch_id, s.settled_on, s.entry_type, s.order_no, s.transaction_id, s.reference_no, s.currency,
    s.gross, s.fee, s.net, s.own_reference
FROM line_nights JOIN (FROM chosen WHERE NOT is_never_whole) c USING (batch, number) JOIN every_line s USING (line)
UNION ALL
SELECT * EXCLUDE (place) FROM alone
UNION ALL
SELECT batch_id, settled_on, entry_type, order_no, transaction_id, '', currency,
    sum(gross)::BIGINT, sum(fee)::BIGINT, sum(net)::BIGINT, ''
FROM parts GROUP BY ALL
HAVING NOT bool_or(is_taken) OR sum(gross) <> 0 OR sum(fee) <> 0 OR sum(net) <> 0;

CREATE OR REPLACE TEMP TABLE lines AS
WITH first_reported AS (
    SELECT batch_id, settled_on, entry_type, order_no, transaction_id, reference_no, currency, gross, fee, net,
        own_reference, min(list_min(numbers)) AS reported
    FROM every_line GROUP BY ALL
)
SELECT s.*, least(f.reported, chosen.batch_reported) AS reported, s.entry_type AS base,
    s.entry_type = 'payout' AND s.own_reference = '' AS is_pay_out,
    CASE WHEN s.transaction_id <> '' THEN s.transaction_id
         WHEN s.order_no <> '' THEN coalesce(o.payment, 'order ' || s.order_no) ELSE '' END AS payment
FROM counted s
JOIN chosen USING (batch_id, settled_on, currency)
LEFT JOIN first_reported f USING (batch_id, settled_on, entry_type, order_no, transaction_id, reference_no, currency, gross, fee, net, own_reference)
LEFT JOIN orders_of o ON o.order_no = s.order_no;

-- What is dated in a closed month and was first reported after its close counts on the first day after it.
CREATE OR REPLACE TEMP TABLE prior AS
SELECT n.number AS reported, d.business_date AS own_on, max(c.next_day) AS counts_on
FROM closed c, nights n, days d
WHERE n.business_date > c.known_by AND d.business_date <= c.last_day
GROUP BY ALL;
ALTER TABLE lines ADD COLUMN counts_on VARCHAR;
UPDATE lines SET counts_on = settled_on;
UPDATE lines SET counts_on = p.counts_on FROM prior p WHERE p.reported = lines.reported AND p.own_on = lines.settled_on;

-- Our own instructions that took place -------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE instructed AS
WITH confirmed AS (
    SELECT i.* EXCLUDE (number), i.number,
        i.state IN ('confirmed', 'resolved_applied') AS is_confirmed,
        min(i.number) FILTER (i.state IN ('confirmed', 'resolved_applied')) OVER (PARTITION BY i.instruction_id) AS reported
    FROM (FROM instructions UNION ALL BY NAME FROM earlier_instructions SEMI JOIN instructions USING (instruction_id)) i
    WHERE i.kind IN ('capture', 'refund')
    QUALIFY row_number() OVER (PARTITION BY i.instruction_id ORDER BY i.number DESC) = 1
),
dated AS (
    SELECT c.instruction_id, c.kind, c.currency, c.amount, c.order_no, c.reported, d.business_date AS event_on,
        CASE WHEN c.transaction_id <> '' THEN c.transaction_id
             WHEN c.order_no <> '' THEN coalesce(o.payment, 'order ' || c.order_no) ELSE '' END AS payment
    FROM (SELECT *, coalesce(outcome_at, sent_at, approved_at) AS moved_at FROM confirmed WHERE is_confirmed) c
    ASOF LEFT JOIN days d ON c.moved_at >= d.opens_at
    LEFT JOIN orders_of o ON o.order_no = c.order_no
)
SELECT *, sum(amount) OVER (
    PARTITION BY kind, payment ORDER BY event_on, instruction_id) - amount AS before
FROM dated;

-- The facts ----------------------------------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE facts AS
WITH our_captures AS (
    SELECT i.*, greatest(0, least(i.amount, coalesce(l.captured, 0) - i.before)) AS counted
    FROM instructed i LEFT JOIN levels l USING (payment) WHERE i.kind = 'capture'
),
known AS (
    SELECT s.number, s.business_date, s.payment, s.order_no, s.currency, s.transaction_date,
        coalesce(c.amount, 0) AS our_captures, coalesce(r.amount, 0) AS our_refunds,
        greatest(s.captured - our_captures, 0) AS captured, greatest(s.refunded - our_refunds, 0) AS refunded, s.charged
    FROM shown s
    LEFT JOIN (SELECT payment, sum(counted) AS amount FROM our_captures GROUP BY payment) c USING (payment)
    LEFT JOIN (SELECT payment, sum(amount) AS amount FROM instructed WHERE kind = 'refund' GROUP BY payment) r USING (payment)
),
moved AS (
    SELECT *,
        captured - lag(captured, 1, 0) OVER w AS of_captures,
        refunded - lag(refunded, 1, 0) OVER w AS of_refunds,
        charged - lag(charged, 1, 0) OVER w AS of_chargebacks,
        row_number() OVER w = 1 AS is_first
    FROM known WINDOW w AS (PARTITION BY payment ORDER BY number)
),
-- By how much each level rose or fell, and above what: what is ours, and all by which it rose before.
raised AS (
    SELECT * REPLACE (above + sum(greatest(amount, 0)) OVER w - greatest(amount, 0) AS above)
    FROM (
        SELECT 'capture' AS level, payment, order_no, currency, number, business_date, of_captures AS amount,
            our_captures AS above, CASE WHEN is_first THEN transaction_date END AS paid_at
        FROM moved WHERE of_captures <> 0
        UNION ALL
        SELECT 'refund', payment, order_no, currency, number, business_date, of_refunds, our_refunds, NULL FROM moved WHERE of_refunds <> 0
        UNION ALL
        SELECT 'chargeback', payment, order_no, currency, number, business_date, of_chargebacks, 0, NULL
        FROM moved WHERE of_chargebacks <> 0)
    WINDOW w AS (PARTITION BY payment, level ORDER BY number)
),
-- What was settled of a payment before a day and by it: each of several refunds has a line of its own.
steps AS (
    SELECT *, sum(amount) OVER (PARTITION BY payment, level ORDER BY day) AS reached
    FROM (
        SELECT payment, entry_type AS level, settled_on AS day, sum(abs(gross)) AS amount FROM lines
        WHERE payment <> '' AND (entry_type = 'capture' AND gross > 0 OR entry_type IN ('refund', 'chargeback') AND gross < 0)
        GROUP BY ALL)
),
dated AS (
    SELECT r.*, d.business_date AS paid_on FROM (FROM raised) r ASOF LEFT JOIN days d ON r.paid_at >= d.opens_at
),
parts AS (
    SELECT r.* EXCLUDE (amount), s.day,
        greatest(least(s.reached, r.above + r.amount) - greatest(s.reached - s.amount, r.above), 0) AS amount
    FROM dated r JOIN steps s ON s.payment = r.payment AND s.level = r.level AND s.day < r.business_date
    WHERE r.paid_on IS NULL AND r.amount > 0
),
by_day AS (
    SELECT level, payment, order_no, currency, number, day, amount, 'first shown' AS dated_by FROM parts
    UNION ALL
    SELECT r.level, r.payment, r.order_no, r.currency, r.number, coalesce(r.paid_on, r.business_date), r.amount - coalesce(p.amount, 0),
        CASE WHEN r.paid_on IS NULL THEN 'first shown' ELSE 'payment date' END
    FROM dated r
    LEFT JOIN (SELECT payment, level, number, sum(amount) AS amount FROM parts GROUP BY ALL) p
        ON p.payment = r.payment AND p.level = r.level AND p.number = r.number
),
by_lines AS (
    SELECT payment, currency, base, is_back, day, order_no, reported, reached, reached - gross AS below
    FROM (
        SELECT *, sum(gross) OVER (PARTITION BY payment, currency, base, is_back ORDER BY day) AS reached
        FROM (
            SELECT payment, currency, base, base = 'chargeback' AND gross > 0 AS is_back, settled_on AS day,
                max(order_no) AS order_no, max(reported) AS reported, sum(CASE WHEN base = 'chargeback' THEN abs(gross) ELSE -gross END) AS gross
            FROM lines WHERE payment <> '' AND base IN ('refund', 'chargeback')
            GROUP BY ALL))
),
refunds_reported AS (
    SELECT payment, max(amount) AS amount FROM (
        SELECT payment, sum(amount) AS amount FROM instructed WHERE kind = 'refund' GROUP BY payment
        UNION ALL SELECT payment, refunded FROM levels)
    GROUP BY payment
),
chargebacks_reported AS (
    SELECT payment,
        sum(greatest(of_chargebacks, 0)) AS taken, sum(greatest(-of_chargebacks, 0)) AS back
    FROM moved GROUP BY payment
)
SELECT 'capture' AS kind, currency, counted AS amount, event_on, order_no, payment, '' AS batch_id, 'instruction' AS dated_by, reported
FROM our_captures
UNION ALL
SELECT CASE WHEN level = 'chargeback' AND amount < 0 THEN 'won_back' ELSE level END, currency,
    CASE WHEN level = 'capture' THEN amount ELSE -amount END, day, order_no, payment, '', dated_by, number
FROM by_day
UNION ALL
SELECT 'refund', currency, -amount, event_on, order_no, payment, '', 'instruction', reported FROM instructed WHERE kind = 'refund'
UNION ALL
-- The first lines settle what is known otherwise.
SELECT CASE WHEN b.is_back THEN 'won_back' ELSE b.base END, b.currency,
    (greatest(b.reached, b.known) - greatest(b.below, b.known)) * CASE WHEN b.is_back THEN 1 ELSE -1 END,
    b.day, b.order_no, b.payment, '', 'settled', b.reported
FROM (
    SELECT b.*, coalesce(CASE WHEN base = 'refund' THEN r.amount WHEN is_back THEN c.back ELSE c.taken END, 0) AS known
    FROM by_lines b LEFT JOIN refunds_reported r USING (payment) LEFT JOIN chargebacks_reported c USING (payment)) b
UNION ALL
SELECT CASE base WHEN 'capture' THEN 'fee_on_captures' WHEN 'refund' THEN 'fee_on_refunds'
                 WHEN 'chargeback' THEN 'fee_on_chargebacks' WHEN 'fee' THEN 'fee_of_account' ELSE 'fee_on_others' END,
    currency, -fee, settled_on, order_no, '', batch_id, 'settled', reported
FROM lines WHERE NOT is_pay_out AND base <> 'payout'
UNION ALL
SELECT 'adjustment', currency, gross, settled_on, order_no, '', batch_id, 'settled', reported FROM lines WHERE base = 'adjustment'
UNION ALL
SELECT 'payee', currency, net, settled_on, order_no, '', batch_id, 'settled', reported FROM lines WHERE base = 'payout' AND NOT is_pay_out
UNION ALL
SELECT 'pay_out', currency, -net, settled_on, order_no, '', batch_id, 'settled', reported FROM lines WHERE is_pay_out
UNION ALL
SELECT 'reserve', currency, -gross, settled_on, order_no, '', batch_id, 'settled', reported FROM lines WHERE base = 'reserve';

DELETE FROM facts WHERE amount = 0;

-- Payments that were settled before the first file are nobody's receivable: no line shows them.
ALTER TABLE facts ADD COLUMN is_outside BOOLEAN DEFAULT false;
UPDATE facts SET is_outside = true
WHERE kind IN ('capture', 'refund', 'chargeback', 'won_back')
  AND event_on < (SELECT label FROM terms SEMI JOIN newest_night USING (number)
                  WHERE name = 'settled_days' AND key = 'first')
  AND payment NOT IN (SELECT payment FROM lines WHERE payment <> '');

ALTER TABLE facts ADD COLUMN own_on VARCHAR;
UPDATE facts SET own_on = event_on;
UPDATE facts SET event_on = p.counts_on FROM prior p WHERE p.reported = facts.reported AND p.own_on = facts.own_on;
