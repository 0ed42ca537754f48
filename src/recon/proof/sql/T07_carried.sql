-- The breaks that the previous run stored as open are those that this one carries forward.
WITH place AS (
    SELECT key AS merchant_id, label AS account_id FROM 'inputs/terms.parquet' WHERE name = 'carried_of'
),
sides AS (
    SELECT key AS currency, label AS measure, number AS stored, 0 AS carried
    FROM 'inputs/terms.parquet' WHERE name = 'carried'
    UNION ALL SELECT '', 'count', 0, 1 FROM 'results/movements.parquet' WHERE movement NOT IN ('new', 'reopened', 'returned')
    UNION ALL SELECT currency_before, 'amount', 0, exposure_before FROM 'results/movements.parquet'
        WHERE movement NOT IN ('new', 'reopened', 'returned')
)
SELECT
    'T7' AS id, 'breaks open on the night before, as stored = carried forward' AS name,
    merchant_id, account_id, currency, measure,
    coalesce(sum(stored), 0) AS "left", coalesce(sum(carried), 0) AS "right"
FROM sides CROSS JOIN place
GROUP BY ALL;
