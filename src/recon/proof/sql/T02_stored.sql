-- What was accepted is new, a repeat or newer than what was known, as the store took it.
SELECT
    'T2' AS id, source || ' stored: accepted = new + repeat + superseding' AS name,
    '' AS merchant_id, '' AS account_id, '' AS currency, 'count' AS measure,
    sum(number) FILTER (step = 'accepted') AS "left",
    sum(number) FILTER (step <> 'accepted') AS "right"
FROM 'inputs/steps.parquet' WHERE way = 'stored'
GROUP BY source;
