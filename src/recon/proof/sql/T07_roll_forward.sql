-- Breaks of the previous run, plus new and reopened, less closed ones, are this run's breaks.
WITH moved AS (
    SELECT *, movement IN ('new', 'reopened', 'returned') AS comes,
        movement IN ('matched late', 'resolved', 'written off', 'pending', 'unverified', 'explained', 'not seen') AS goes
    FROM 'results/movements.parquet'
),
numbers AS (
    SELECT merchant_id, account_id, 1 AS before, 0 AS now FROM 'inputs/opening.parquet'
    WHERE break_id NOT IN (SELECT break_id FROM moved WHERE goes)
    UNION ALL SELECT merchant_id, account_id, 1, 0 FROM moved WHERE comes
    UNION ALL SELECT merchant_id, account_id, 0, 1 FROM 'results/breaks.parquet'
),
money AS (
    SELECT merchant_id, account_id, currency, exposure AS before, 0 AS now FROM 'inputs/opening.parquet'
    UNION ALL SELECT merchant_id, account_id, currency_before, -exposure_before, 0 FROM moved WHERE exposure_before <> 0
    UNION ALL SELECT merchant_id, account_id, currency, exposure, 0 FROM moved WHERE exposure <> 0
    UNION ALL SELECT merchant_id, account_id, currency, 0, exposure FROM 'results/breaks.parquet'
),
sides AS (
    SELECT 'opening + new + reopened - closed = closing' AS name, merchant_id, account_id,
        '' AS currency, 'count' AS measure, before, now FROM numbers
    UNION ALL
    SELECT 'opening + new + reopened ± revalued - closed = closing', merchant_id, account_id,
        currency, 'amount', before, now FROM money
)
SELECT 'T7' AS id, name, merchant_id, account_id, currency, measure,
    coalesce(sum(before), 0) AS "left", coalesce(sum(now), 0) AS "right"
FROM sides
WHERE EXISTS (FROM 'inputs/terms.parquet' t WHERE t.name = 'previous')
GROUP BY ALL;
