-- For each statement that counts: opening balance + booked entries = closing balance.
-- Banks may give every statement the same number; its place in order tells them apart.
SELECT
    'T15' AS id, c.bank || ', statement ' || s.statement_no || ', ' || c.place + 1 || ' in order: opening + booked = closing' AS name,
    '' AS merchant_id, '' AS account_id, s.currency, 'amount' AS measure,
    s.opening + s.others + coalesce(e.booked, 0) AS "left",
    s.closing AS "right"
FROM 'inputs/statements.parquet' s
JOIN 'results/counted.parquet' c ON c.number = s.number AND c.place >= 0
LEFT JOIN (
    SELECT statement, sum(amount) AS booked FROM 'inputs/bank.parquet'
    WHERE part = 0 AND status = 'booked' GROUP BY statement
) e ON e.statement = s.number
WHERE s.opening IS NOT NULL AND s.closing IS NOT NULL;
