-- What the nights before those of a month are asked about: payments that were won back, which no night that is read may
-- have shown as charged back, and, after a close, those that come back. Run first: with no row no earlier night is read.

CREATE OR REPLACE TEMP TABLE newest_night AS SELECT max(number) AS number FROM nights;

CREATE OR REPLACE TEMP TABLE won AS SELECT DISTINCT order_no, transaction_id FROM settlement WHERE entry_type = 'chargeback' AND gross > 0;

-- Paid before the first night's date closed, and shown by a later night and not by the first one.
CREATE OR REPLACE TEMP TABLE came_back AS
WITH found AS NOT MATERIALIZED (
    SELECT number, transaction_id, CASE WHEN transaction_id = '' THEN order_no ELSE '' END AS order_no, transaction_date
    FROM answers WHERE answer = 'found'
),
-- None where no month is closed: then no answer is read for it.
first_night AS (
    SELECT number, business_date FROM nights
    WHERE number >= 0 AND EXISTS (FROM closed WHERE known_by <> '') ORDER BY number LIMIT 1),
first_close AS (
    SELECT min(d.opens_at) AS closed_at FROM days d, first_night n
    WHERE d.business_date > n.business_date HAVING count(*) > 0)
SELECT order_no, transaction_id, min(transaction_date) AS paid_at
FROM found JOIN first_close ON transaction_date IS NULL OR transaction_date < closed_at
ANTI JOIN (FROM found SEMI JOIN first_night USING (number)) shown USING (order_no, transaction_id)
GROUP BY order_no, transaction_id;
