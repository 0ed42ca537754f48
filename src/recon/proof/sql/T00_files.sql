-- Every row of every file is accepted, rejected or left out by a rule: by source, then by file.
WITH rejected AS (
    SELECT kind, count(*) AS number FROM 'inputs/rejects.parquet' GROUP BY kind
)
SELECT
    'T0' AS id, kind || ': file = accounts + unassigned' AS name,
    '' AS merchant_id, '' AS account_id, '' AS currency, 'count' AS measure,
    sum(rows_read) AS "left",
    sum(rows_accepted + rows_skipped) + coalesce(any_value(r.number), 0) AS "right"
FROM 'inputs/files.parquet' LEFT JOIN rejected r USING (kind)
GROUP BY kind
UNION ALL
SELECT
    'T1', kind || ' ' || name || ': read = accepted + rejected + skipped', '', '', '', 'count',
    rows_read, rows_accepted + rows_rejected + rows_skipped
FROM 'inputs/files.parquet';
