-- For the chain of a bank's statements that count: first opening balance + all booked entries
-- = last closing balance.
WITH counted AS (
    SELECT c.bank, c.place, s.*,
        s.others + coalesce((
            SELECT sum(amount) FROM 'inputs/bank.parquet' e
            WHERE e.statement = s.number AND e.part = 0 AND e.status = 'booked'), 0) AS moved
    FROM 'inputs/statements.parquet' s
    JOIN 'results/counted.parquet' c ON c.number = s.number AND c.place >= 0
)
SELECT
    'T16' AS id,
    bank || ': first opening + all booked = last closing, to ' || arg_max(to_date, place) AS name,
    '' AS merchant_id, '' AS account_id, arg_max(currency, place) AS currency, 'amount' AS measure,
    arg_min(opening, place) + sum(moved) AS "left",
    arg_max(closing, place) AS "right"
FROM counted
GROUP BY bank
HAVING bool_and(opening IS NOT NULL);
