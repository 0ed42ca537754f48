-- The money in the ledger file leads, step by step, to the ledger money that is compared.
WITH place AS (
    SELECT key AS merchant_id, label AS account_id FROM 'inputs/terms.parquet' WHERE name = 'ledger_of'
),
sides AS (
    SELECT currency, number AS came_to, 0 AS is_compared FROM 'inputs/steps.parquet' WHERE way = 'ledger'
    UNION ALL
    SELECT currency, 0, net FROM placed WHERE source = 'ledger'
)
SELECT
    'T0' AS id, 'ledger in money: file = compared, step by step' AS name,
    merchant_id, account_id, currency, 'amount' AS measure,
    sum(came_to) AS "left", sum(is_compared) AS "right"
FROM sides CROSS JOIN place
GROUP BY ALL;
