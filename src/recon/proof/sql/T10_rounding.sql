-- Rounding stays within the run's budget, where one is set.
SELECT
    'T10' AS id, 'rounding beyond the budget' AS name,
    merchant_id, account_id, currency, 'amount' AS measure,
    greatest(sum(abs(of_orders) + abs(of_ledger)) - any_value(b.number), 0) AS "left", 0 AS "right"
FROM left_over
JOIN 'inputs/terms.parquet' b
    ON b.name = 'tolerance' AND b.label = 'night_budget_minor_units' AND b.key = currency
WHERE rounded
GROUP BY ALL;
