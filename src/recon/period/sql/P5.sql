-- The books differ from the gateway by what is booked in another month than it took place, and by what
-- is open; of that the breaks and what waits say the same. Adjustments that wait are listed by themselves, day by day.
WITH own AS (FROM differing WHERE side = 'closing')
SELECT 'P5' AS id, 'books - gateway = booked in another month + open' AS name, currency, 'amount' AS measure,
    sum(gap)::BIGINT AS "left", sum(still + waits + timing)::BIGINT AS "right"
FROM own GROUP BY currency
UNION ALL
SELECT 'P5', 'open in the books = breaks and what waits', currency, 'amount', sum(still)::BIGINT, sum(shown)::BIGINT
FROM own GROUP BY currency
UNION ALL
SELECT 'P5', 'open in the books and shown by no night', currency, 'count', count(*) FILTER (still <> shown), 0
FROM own GROUP BY currency
UNION ALL
SELECT 'P5', 'listed = waits: adjustments, ' || CASE WHEN w.is_entry THEN 'not in batch, ' ELSE 'not booked, ' END || w.day,
    w.currency, 'amount', coalesce(sum(o.waits), 0)::BIGINT, sum(w.amount)::BIGINT
FROM waiting w LEFT JOIN own o USING (currency, key) GROUP BY w.is_entry, w.day, w.currency;
