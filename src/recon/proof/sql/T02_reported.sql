-- The settlement lines compared are those that the files of a plain run report, each as often as the
-- file that has it most often has it. With one file there is nothing to choose, and no total.
WITH reported AS (
    SELECT
        split_part(key, chr(31), 1) AS merchant_id, split_part(key, chr(31), 2) AS account_id,
        split_part(key, chr(31), 3) AS currency, label AS measure, number
    FROM 'inputs/terms.parquet' WHERE name = 'reported'
),
lines AS (FROM 'inputs/settlement.parquet' WHERE EXISTS (FROM reported)),
compared AS (
    SELECT merchant_id, account_id, currency, 'count' AS measure, count(*) AS number FROM lines GROUP BY ALL
    UNION ALL SELECT merchant_id, account_id, currency, 'amount', sum(net) FROM lines GROUP BY ALL
)
SELECT
    'T2' AS id, 'settlement: reported, each line as often as one file has it at most = compared' AS name,
    merchant_id, account_id, currency, measure,
    coalesce(r.number, 0) AS "left", coalesce(c.number, 0) AS "right"
FROM reported r FULL JOIN compared c USING (merchant_id, account_id, currency, measure);
