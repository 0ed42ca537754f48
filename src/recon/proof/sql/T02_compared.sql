-- The accepted rows lead, step by step, to the rows compared.
WITH arrived AS (
    SELECT source, sum(number) AS number FROM 'inputs/steps.parquet' WHERE way = 'arrived' GROUP BY source
    UNION ALL
    SELECT DISTINCT key, 0 FROM 'inputs/terms.parquet' WHERE name = 'arrived'
),
steps AS (SELECT source, sum(number) AS number FROM arrived GROUP BY source),
accepted AS (SELECT kind AS source, sum(rows_accepted) AS number FROM 'inputs/files.parquet' GROUP BY kind),
compared AS (
    SELECT 'orders' AS source, count(*) AS number FROM 'inputs/orders.parquet'
    UNION ALL SELECT 'gateway', count(*) FROM answers
    UNION ALL SELECT 'ledger', count(*) FROM 'inputs/ledger.parquet'
    UNION ALL SELECT 'instructions', count(*) FROM counted_instructions
    UNION ALL SELECT 'settlement', count(*) FROM 'inputs/settlement.parquet'
)
SELECT
    'T2' AS id, s.source || ': rows accepted, step by step = rows compared' AS name,
    '' AS merchant_id, '' AS account_id, '' AS currency, 'count' AS measure,
    coalesce(a.number, 0) + s.number AS "left", c.number AS "right"
FROM steps s LEFT JOIN accepted a USING (source) JOIN compared c USING (source);
