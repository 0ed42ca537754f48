-- The sheets of the workbook, as read back from the file, hold the results: the number of rows of
-- each list and their sum of gateway less order, for matches also by rule, and for a list too long for
-- its sheet the rows of the file that the workbook names.
WITH matched AS (
    SELECT rule, currency, count(*) AS items, sum(effect_orders) AS effect FROM 'results/matches.parquet' GROUP BY ALL
),
lists AS (
    SELECT 'match' AS section, currency, items, effect FROM matched
    UNION ALL SELECT 'match by ' || rule, currency, items, effect FROM matched
    UNION ALL SELECT 'break', currency, 1, effect_orders FROM 'results/breaks.parquet'
    UNION ALL SELECT 'pending', currency, 1, effect_orders FROM 'results/pending.parquet'
    UNION ALL SELECT 'unverified', currency, 1, effect_orders FROM 'results/unverified.parquet'
),
named AS (
    SELECT DISTINCT section, split_part(section, ' in the file with SHA-256 ', 1) AS list
    FROM 'proof/sheets.parquet' WHERE contains(section, ' in the file with SHA-256 ')
),
sides AS (
    SELECT section, currency, measure, number AS on_sheet, 0 AS stored FROM 'proof/sheets.parquet'
    UNION ALL SELECT section, '', 'count', 0, sum(items) FROM lists GROUP BY ALL
    UNION ALL SELECT named.section, '', 'count', 0, sum(items) FROM named JOIN lists ON lists.section = list GROUP BY ALL
    -- Sets with only a rejected row have no currency and no amount.
    UNION ALL SELECT section, currency, 'amount', 0, sum(effect) FROM lists WHERE currency <> '' GROUP BY ALL
)
SELECT
    'T13' AS id, 'sheet = database, ' || section AS name, merchant_id, account_id, currency, measure,
    sum(on_sheet) AS "left", sum(stored) AS "right"
FROM sides CROSS JOIN (SELECT DISTINCT merchant_id, account_id FROM 'proof/sheets.parquet')
GROUP BY ALL;
