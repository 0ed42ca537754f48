-- The ledger differs from the gateway by what is listed; of what is open by now the breaks and what waits say the same.
-- Adjustments that wait are listed by themselves, day by day.
WITH own AS (FROM differing WHERE side = 'closing'),
listed AS (FROM listed_differences WHERE side = 'closing'),
sides AS (
    SELECT 'ledger - gateway = booked in another month + open' AS name, 'amount' AS measure, currency, amount AS "left", 0 AS "right"
    FROM entries, month WHERE day <= last
    UNION ALL
    SELECT 'ledger - gateway = booked in another month + open', 'amount', currency, -amount, 0 FROM fact_keys, month WHERE day <= last
    UNION ALL
    SELECT 'ledger - gateway = booked in another month + open', 'amount', currency, 0, amount FROM listed
    UNION ALL
    SELECT 'open in the ledger = breaks and what waits', 'amount', currency, still, shown FROM own
    UNION ALL
    SELECT 'open in the ledger and shown by no night', 'count', currency, CASE WHEN still <> shown THEN 1 ELSE 0 END, 0 FROM own
    UNION ALL
    SELECT 'listed = waits: ' || key, 'amount', currency, amount, 0 FROM listed WHERE what IN ('not_in_batch', 'not_booked')
    UNION ALL
    SELECT 'listed = waits: ' || key, 'amount', currency, 0, amount FROM waiting, month WHERE day <= last
)
SELECT 'P5' AS id, name, currency, measure, sum("left")::BIGINT AS "left", sum("right")::BIGINT AS "right"
FROM sides WHERE EXISTS (FROM ledger_given) GROUP BY name, currency, measure;
