-- What was accepted is new, a repeat or newer than what was known, as the store took it; and the
-- rows accepted come, step by step, to the rows compared.
WITH stored AS (
    SELECT source, step, number FROM 'compared/steps.parquet' WHERE way = 'stored'
),
arrived AS (
    SELECT source, sum(number) AS number FROM 'compared/steps.parquet' WHERE way = 'arrived' GROUP BY source
    UNION ALL
    SELECT DISTINCT key, 0 FROM 'compared/terms.parquet' WHERE name = 'arrived'
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
    'T2' AS id, source || ' stored: accepted = new + repeat + superseding' AS name,
    '' AS merchant_id, '' AS account_id, '' AS currency, 'count' AS measure,
    sum(number) FILTER (step = 'accepted') AS "left",
    sum(number) FILTER (step <> 'accepted') AS "right"
FROM stored
GROUP BY source
UNION ALL
SELECT
    'T2', s.source || ': rows accepted, step by step = rows compared', '', '', '', 'count',
    coalesce(a.number, 0) + s.number, c.number
FROM steps s LEFT JOIN accepted a USING (source) JOIN compared c USING (source);
