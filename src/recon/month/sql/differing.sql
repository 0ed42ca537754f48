-- Why ledger and gateway differ at both closes, by order or group: run after positions.sql.
CREATE OR REPLACE TEMP TABLE newest_breaks AS FROM breaks SEMI JOIN newest_night USING (number);
CREATE OR REPLACE TEMP TABLE clearing AS
SELECT label AS account FROM terms SEMI JOIN newest_night USING (number) WHERE name = 'clearing';
CREATE OR REPLACE TEMP TABLE ledger_given AS
FROM terms SEMI JOIN newest_night USING (number) WHERE name = 'given' AND key = 'ledger';

-- Every line of the settlement that any night reported which had its batch line by line.
CREATE OR REPLACE TEMP TABLE reported_lines AS
WITH whole AS (FROM groups WHERE NOT is_summed),
by_night AS (
    SELECT line, number, count(*) AS n FROM line_nights SEMI JOIN whole USING (batch, number) GROUP BY line, number
)
SELECT e.* EXCLUDE (numbers, line, batch, is_sum), b.times
FROM (SELECT line, max(n) AS times FROM by_night GROUP BY line) b JOIN every_line e USING (line);

-- Lines that stood alone in a night beside the sum of their batch, of payments that no line settles there now.
CREATE OR REPLACE TEMP TABLE lost_lines AS
FROM every_line
SEMI JOIN (FROM line_nights SEMI JOIN (FROM groups WHERE is_summed) USING (batch, number) WHERE NOT is_sum) USING (line)
ANTI JOIN lines USING (batch_id, settled_on, currency, entry_type, order_no, transaction_id);

-- Adjustments of no order: no night compares them. Each is answered by one of the opposite amount and the same name; then,
-- of two of which one at least names no batch that a night reported, by the oldest. What is left waits, under a key of its own.
CREATE OR REPLACE TEMP TABLE loose AS
WITH l AS (
    SELECT true AS is_entry, rowid AS place, currency, batch_id, day, amount FROM entries WHERE key = 'adjustments'
    UNION ALL SELECT false, rowid, currency, batch_id, day, -amount FROM fact_keys WHERE key = 'adjustments'
),
named AS (
    SELECT *, row_number() OVER (PARTITION BY currency, batch_id, amount ORDER BY day, is_entry, place) AS nth
    FROM l WHERE l.batch_id <> ''
)
SELECT n.* EXCLUDE (nth)
FROM named n ANTI JOIN (SELECT currency, batch_id, -amount AS amount, nth FROM named) o USING (currency, batch_id, amount, nth)
UNION ALL
SELECT l.* FROM l ANTI JOIN named USING (is_entry, place);

-- Of a batch from before the first night's window the nights have the sum alone: an entry that names it is settled with it.
CREATE OR REPLACE TEMP TABLE settled_before AS
SELECT e.place, e.currency, s.settled_on AS day, e.amount, e.batch_id
FROM (FROM loose WHERE is_entry) e
JOIN (SELECT currency, batch_id, min(settled_on) AS settled_on FROM lines WHERE base = 'earlier' GROUP BY currency, batch_id) s
    USING (currency, batch_id);

CREATE OR REPLACE TEMP TABLE waiting AS
WITH unpaired AS (
    SELECT *, coalesce(l.batch_id IN (SELECT batch_id FROM lines), false) AS is_reported FROM loose l
    WHERE NOT is_entry OR place NOT IN (SELECT place FROM settled_before)
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY currency, amount, is_reported ORDER BY day, is_entry, place) AS nth FROM unpaired
),
-- First a row of a batch and one of none; then two of none. Rows of two batches never answer each other.
still_unpaired AS (
    SELECT r.* REPLACE (row_number() OVER (PARTITION BY currency, amount, is_reported ORDER BY day, is_entry, place) AS nth)
    FROM ranked r ANTI JOIN (SELECT currency, -amount AS amount, NOT is_reported AS is_reported, nth FROM ranked) o USING (currency, amount, is_reported, nth)
)
SELECT r.*, 'adjustments, ' || CASE WHEN is_entry THEN 'not in batch, ' ELSE 'not booked, ' END || day AS key
FROM still_unpaired r
ANTI JOIN (SELECT currency, -amount AS amount, is_reported, nth FROM still_unpaired WHERE NOT is_reported) o USING (currency, amount, is_reported, nth);
UPDATE entries SET key = w.key FROM waiting w WHERE w.is_entry AND entries.rowid = w.place;
UPDATE fact_keys SET key = w.key FROM waiting w WHERE NOT w.is_entry AND fact_keys.rowid = w.place;
INSERT INTO fact_keys BY NAME SELECT currency, day, amount, batch_id, 'adjustments' AS key FROM settled_before;

CREATE OR REPLACE TEMP TABLE differing AS
WITH
rows_shown AS (
    SELECT b.number, b.order_no, b.transaction_id, b.code AS named, e.currency, e.amount AS effect
    FROM effects e JOIN breaks b ON b.number = e.number AND b.break_id = e.break_id WHERE e.leg = 'ledger'
    UNION ALL SELECT number, order_no, transaction_id, entry_id, currency, effect_ledger FROM pending
    UNION ALL SELECT number, order_no, transaction_id, entry_id, currency, effect_ledger FROM unverified
    UNION ALL SELECT number, order_no, transaction_id, entry_id, currency, effect_ledger FROM matches
        WHERE NOT contains(flags, 'written_off')
),
keyed AS (
    SELECT r.number, r.currency, coalesce(r.effect, 0) AS effect,
        CASE WHEN r.order_no <> '' THEN r.order_no
             WHEN p.order_no IS NOT NULL THEN p.order_no
             WHEN r.transaction_id <> '' THEN r.transaction_id
             WHEN r.named LIKE 'FEE_%' OR r.named LIKE 'fees:%' THEN 'fees'
             WHEN r.named LIKE 'PAYOUT_%' OR r.named LIKE 'LEDGER_PAYOUT%' OR r.named LIKE 'payout:%' THEN 'payouts'
             WHEN r.named LIKE 'RESERVE_%' OR r.named LIKE 'reserves:%' THEN ''
             ELSE 'entry ' || r.named END AS key
    FROM rows_shown r LEFT JOIN payments_of p ON p.payment = nullif(r.transaction_id, '')
),
-- Which night had an order last is asked of those alone that differed in any.
asked AS (
    SELECT key FROM keyed WHERE effect <> 0
    UNION SELECT order_no FROM unverified
    UNION SELECT unnest(['fees', 'payouts', 'adjustments'])
),
seen AS (
    SELECT number, order_no AS key FROM orders WHERE order_no IN (FROM asked)
    UNION ALL SELECT number, order_no FROM answers WHERE order_no IN (FROM asked)
    UNION ALL SELECT number, order_no FROM ledger WHERE order_no IN (FROM asked)
    UNION ALL SELECT number, unnest(['fees', 'payouts', 'adjustments']) FROM nights
),
last_seen AS (SELECT key, max(number) AS number FROM seen GROUP BY key),
last_shown AS (SELECT key, max(number) AS number FROM keyed WHERE key <> '' GROUP BY key),
newest AS (
    SELECT k.* FROM keyed k JOIN last_shown USING (key, number) LEFT JOIN last_seen s USING (key)
    WHERE k.number >= coalesce(s.number, k.number)
),
unverified_keys AS (
    SELECT DISTINCT CASE WHEN u.order_no <> '' THEN u.order_no WHEN p.order_no IS NOT NULL THEN p.order_no
                         WHEN u.transaction_id <> '' THEN u.transaction_id ELSE 'entry ' || u.entry_id END AS key
    FROM unverified u LEFT JOIN payments_of p ON p.payment = nullif(u.transaction_id, '')
    LEFT JOIN last_seen s ON s.key = u.order_no
    WHERE u.number >= coalesce(s.number, u.number)
),
-- What we and the settlement know of payments beyond what an answer shows.
reported AS (
    SELECT s.currency, CASE WHEN s.order_no <> '' THEN s.order_no ELSE s.payment END AS key,
        -(s.captured - s.charged - CASE WHEN s.is_unknown THEN greatest(coalesce(r.refunded, 0), 0) ELSE s.refunded END) AS amount
    FROM levels s
    LEFT JOIN (SELECT payment, -sum(gross) AS refunded FROM lines WHERE base = 'refund' GROUP BY payment) r ON r.payment = s.payment
),
sums AS (
    SELECT currency, key, sum(moved) AS moved, sum(booked) AS booked, sum(effect) AS effect, sum(unseen) AS unseen,
        sum(CASE WHEN day <= before THEN moved ELSE 0 END) AS moved_before, sum(CASE WHEN day <= last THEN moved ELSE 0 END) AS moved_by,
        sum(CASE WHEN day <= before THEN booked ELSE 0 END) AS booked_before, sum(CASE WHEN day <= last THEN booked ELSE 0 END) AS booked_by
    FROM (
        SELECT currency, key, day, amount AS moved, 0 AS booked, 0 AS effect,
            CASE WHEN key IN ('fees', 'payouts', 'adjustments') OR key IN (SELECT key FROM waiting) THEN 0 ELSE amount END AS unseen
        FROM fact_keys
        UNION ALL SELECT currency, key, day, 0, amount, 0, 0 FROM entries
        UNION ALL SELECT currency, key, '', 0, 0, effect, 0 FROM newest
        UNION ALL SELECT currency, key, '', 0, 0, 0, amount FROM reported), month
    GROUP BY currency, key
),
at_closes AS (
    SELECT 'closing' AS side, * EXCLUDE (moved_before, booked_before) FROM sums
    UNION ALL
    SELECT 'opening', * EXCLUDE (moved_before, booked_before) REPLACE (moved_before AS moved_by, booked_before AS booked_by) FROM sums
)
SELECT side, currency, key, moved_by, booked_by, booked_by - moved_by AS gap,
    moved - moved_by AS moved_later, booked - booked_by AS booked_later,
    CASE WHEN key IN (SELECT key FROM waiting) THEN 0 ELSE booked - moved END AS still,
    CASE WHEN key IN (SELECT key FROM waiting) THEN booked - moved ELSE 0 END AS waits,
    (moved - moved_by) - (booked - booked_by) AS timing,
    CASE WHEN key IN (FROM unverified_keys) THEN booked - moved ELSE -effect - unseen END AS shown
FROM at_closes;

-- As a statement lists it: what differs of an order at a close is answered by what was booked since, else by what took place
-- since; the rest is open. Fees and payouts are sums of many entries, of which nobody knows which one answers which.
-- What the nights show otherwise than it is stays to be seen, whatever else answers the rest.
CREATE OR REPLACE TEMP TABLE listed_differences AS
WITH classed AS (
    SELECT *, abs(gap) AS size, sign(gap)::BIGINT AS way, key IN ('fees', 'payouts') AS is_group,
        CASE WHEN key IN ('fees', 'payouts') THEN key WHEN key IN (SELECT key FROM waiting WHERE is_entry) THEN 'not_in_batch'
             WHEN key IN (SELECT key FROM waiting) THEN 'not_booked' ELSE 'open' END AS what
    FROM differing
),
answered AS (
    SELECT *, CASE WHEN what = 'open' THEN least(greatest(-way * booked_later, 0), size) ELSE 0 END AS booked,
        CASE WHEN what = 'open' THEN least(greatest(way * moved_later, 0), size - booked) ELSE 0 END AS moved
    FROM classed
),
parts AS (
    SELECT side, what, currency, key, way * (size - booked - moved) AS amount,
        CASE WHEN what = 'open' OR is_group THEN way * (size - booked - moved) + shown - still ELSE 0 END AS shown
    FROM answered
    UNION ALL SELECT side, 'booked_later', currency, key, way * booked, 0 FROM answered
    UNION ALL SELECT side, 'booked_earlier', currency, key, way * moved, 0 FROM answered
)
SELECT side, what, currency, key, amount::BIGINT AS amount, shown::BIGINT AS shown FROM parts WHERE amount <> 0 OR shown <> 0;
