-- Each accepted row was stored as new, as a repeat or as superseding an older row.
SELECT
    'T2' AS id, source || ' stored: accepted = new + repeat + superseding' AS name,
    '' AS merchant_id, '' AS account_id, '' AS currency, 'count' AS measure,
    sum(number) FILTER (step = 'accepted') AS "left",
    sum(number) FILTER (step <> 'accepted') AS "right"
FROM 'inputs/steps.parquet' WHERE way = 'stored'
GROUP BY source;
