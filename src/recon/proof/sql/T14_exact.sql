-- A set that the night called exact is one: one paid order, one paid payment and, where they are
-- covered, one capture in the books and one settled line, over one amount in one currency.
WITH orders AS (
    SELECT merchant_id, account_id, order_no, any_value(currency) AS currency, any_value(net) AS amount
    FROM counted_orders GROUP BY ALL HAVING count(*) = 1 AND any_value(status) = 'paid'
),
payments AS (
    SELECT merchant_id, account_id, order_no, any_value(currency) AS currency, any_value(net) AS amount
    FROM counted_answers GROUP BY ALL
    HAVING count(*) = 1 AND any_value(payment) = 'paid' AND any_value(refunded) = 0
),
captures AS (
    SELECT merchant_id, account_id, order_no, any_value(entry_id) AS entry_id,
        any_value(currency) AS currency, any_value(net) AS amount
    FROM counted_entries WHERE is_compared AND NOT is_payout AND order_no <> ''
    GROUP BY ALL HAVING count(*) = 1 AND any_value(base) = 'capture' AND NOT any_value(is_back)
),
settled AS (
    SELECT merchant_id, account_id, order_no, any_value(currency) AS currency, any_value(net) AS amount
    FROM counted_lines WHERE order_no <> '' GROUP BY ALL HAVING count(*) = 1
),
confirmed AS (
    SELECT e.merchant_id, e.account_id, e.currency, e.amount,
        o.amount = e.amount AND p.amount = e.amount AND e.amount > 0
            AND ('ledger' NOT IN (FROM given) OR c.amount = e.amount AND c.entry_id = e.entry_id)
            AND ('settlement' NOT IN (FROM given) OR s.amount = e.amount) AS is_so
    FROM exact e
    LEFT JOIN orders o USING (merchant_id, account_id, order_no, currency)
    LEFT JOIN payments p USING (merchant_id, account_id, order_no, currency)
    LEFT JOIN captures c USING (merchant_id, account_id, order_no, currency)
    LEFT JOIN settled s USING (merchant_id, account_id, order_no, currency)
)
SELECT 'T14' AS id, 'sets called exact = those that SQL finds exact' AS name,
    merchant_id, account_id, currency, 'count' AS measure, count(*) AS "left", count_if(is_so) AS "right"
FROM confirmed GROUP BY ALL
UNION ALL
SELECT 'T14', 'sets called exact = those that SQL finds exact', merchant_id, account_id, currency, 'amount',
    sum(amount), coalesce(sum(amount) FILTER (is_so), 0)
FROM confirmed GROUP BY ALL;
