-- The movements of the month with the night that reported each first, and the lists made of them: run last of the tables.
CREATE OR REPLACE TEMP TABLE own_facts AS
SELECT f.*, n.business_date AS reported_on, n.business_date > last AS is_late
FROM facts f JOIN nights n ON n.number = f.reported, month WHERE f.event_on BETWEEN first AND last;

CREATE OR REPLACE TEMP TABLE reported_by_night AS
SELECT reported_on AS night, currency, count(*) AS "count", sum(amount)::BIGINT AS amount
FROM own_facts WHERE NOT is_late GROUP BY reported_on, currency;

-- What lies across an end of the month, with both dates; '' for what has not come yet.
CREATE OR REPLACE TEMP TABLE straddling AS
WITH sold AS (
    SELECT o.order_no, d.business_date AS sold_on
    FROM (SELECT order_no, max(ordered_at) AS ordered_at
          FROM orders SEMI JOIN (SELECT order_no, max(number) AS number FROM orders GROUP BY order_no) USING (order_no, number)
          GROUP BY order_no) o
    ASOF JOIN days d ON o.ordered_at >= d.opens_at
),
captures AS (
    SELECT f.currency, coalesce(nullif(f.payment, ''), f.batch_id) AS key, f.order_no, f.payment, f.own_on, f.amount
    FROM facts f WHERE f.kind = 'capture' AND f.amount > 0
),
came AS (
    SELECT p.batch_id, p.currency, max(r.booked_on) AS came_on
    FROM paid p JOIN received r USING (result_id) WHERE p.is_own AND p.state <> 'OPENING' GROUP BY p.batch_id, p.currency
),
events AS (
    SELECT 'sold' AS what, c.currency, c.key, c.order_no, s.sold_on AS first_on, c.own_on AS then_on, c.amount
    FROM captures c JOIN sold s USING (order_no)
    UNION ALL
    SELECT 'settled', c.currency, c.key, c.order_no, c.own_on, coalesce(l.settled_on, ''), c.amount
    FROM captures c
    LEFT JOIN (SELECT payment, min(settled_on) AS settled_on FROM lines WHERE base = 'capture' GROUP BY payment) l USING (payment)
    UNION ALL
    SELECT 'at_bank', m.currency, m.batch_id, '', m.moved_on, coalesce(c.came_on, ''), m.amount
    FROM transit_moves m LEFT JOIN came c USING (batch_id, currency) WHERE m.move = 'paid'
)
SELECT e.* FROM events e, month WHERE (first_on BETWEEN first AND last) <> (then_on BETWEEN first AND last)
UNION ALL
SELECT 'old_sale', f.currency, coalesce(nullif(f.payment, ''), f.batch_id), f.order_no, s.sold_on, f.event_on, f.amount
FROM own_facts f JOIN sold s USING (order_no), month WHERE f.kind = 'refund' AND s.sold_on < first
UNION ALL
SELECT 'late', currency, coalesce(nullif(payment, ''), batch_id), order_no, event_on, reported_on, amount FROM own_facts WHERE is_late
UNION ALL
SELECT 'prior', currency, coalesce(nullif(payment, ''), batch_id), order_no, own_on, reported_on, amount FROM own_facts WHERE own_on <> event_on
UNION ALL
SELECT 'entry_vanished', currency, entry_id, order_no, booked_on, gone_on, amount
FROM entries, month WHERE gone_on BETWEEN first AND last AND EXISTS (FROM ledger_given);

-- Fees of captures that no line settled, by what the month's settled captures cost; an estimate, in no sum.
CREATE OR REPLACE TEMP TABLE estimates AS
SELECT w.currency, (w.amount * l.fee // l.gross)::BIGINT AS amount
FROM (SELECT currency, sum(amount) AS amount FROM open_items
      WHERE side = 'closing' AND what = 'not_settled' AND amount > 0 GROUP BY currency) w
JOIN (SELECT currency, sum(gross) AS gross, sum(fee) AS fee FROM lines, month
      WHERE base = 'capture' AND settled_on BETWEEN first AND last GROUP BY currency HAVING sum(gross) > 0) l USING (currency)
WHERE w.amount * l.fee // l.gross > 0;

-- Payments refunded in part, of which neither an instruction nor a line states how much.
CREATE OR REPLACE TEMP TABLE unknown_refunds AS
SELECT payment, order_no, currency FROM levels WHERE is_unknown AND payment NOT IN (SELECT payment FROM facts WHERE kind = 'refund');
