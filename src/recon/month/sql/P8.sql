-- Fees charged in the month are booked in it or are to be accrued, and no fee of a line is lost.
WITH charged AS (
    SELECT currency, -amount AS fee FROM facts, month WHERE kind LIKE 'fee_%' AND event_on BETWEEN first AND last
),
of_lines AS (
    SELECT currency, fee FROM lines, month WHERE base <> 'payout' AND fee <> 0 AND counts_on BETWEEN first AND last
),
sides AS (
    SELECT 'fees of the lines = fees charged' AS name, 'count' AS measure, currency, count(*) AS "left", 0 AS "right" FROM of_lines GROUP BY currency
    UNION ALL SELECT 'fees of the lines = fees charged', 'count', currency, 0, count(*) FROM charged GROUP BY currency
    UNION ALL SELECT 'fees of the lines = fees charged', 'amount', currency, sum(fee), 0 FROM of_lines GROUP BY currency
    UNION ALL SELECT 'fees of the lines = fees charged', 'amount', currency, 0, sum(fee) FROM charged GROUP BY currency
    UNION ALL
    SELECT 'fees charged = booked + to accrue at the close - to accrue before', 'amount', currency, sum(fee), 0
    FROM charged WHERE EXISTS (FROM ledger_given) GROUP BY currency
    UNION ALL
    SELECT 'fees charged = booked + to accrue at the close - to accrue before', 'amount', currency, 0, -sum(amount)
    FROM entries, month WHERE key = 'fees' AND day BETWEEN first AND last AND EXISTS (FROM ledger_given) GROUP BY currency
    UNION ALL
    SELECT 'fees charged = booked + to accrue at the close - to accrue before', 'amount', currency, 0,
        sum(CASE WHEN side = 'closing' THEN amount ELSE -amount END)
    FROM listed_differences WHERE key = 'fees' AND EXISTS (FROM ledger_given) GROUP BY currency
)
SELECT 'P8' AS id, name, currency, measure, sum("left")::BIGINT AS "left", sum("right")::BIGINT AS "right"
FROM sides GROUP BY name, currency, measure;
