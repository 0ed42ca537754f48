-- Each control total, as computed by SQL, compared with the run's own figures (proof/totals.parquet).
-- A total of T14 has no figure there: its two sides must agree.
CREATE OR REPLACE TEMP TABLE held AS
SELECT
    coalesce(s.id, n.id) AS id, coalesce(s.name, n.name) AS name,
    coalesce(s.merchant_id, n.merchant_id) AS merchant_id, coalesce(s.account_id, n.account_id) AS account_id,
    coalesce(s.currency, n.currency) AS currency, coalesce(s.measure, n.measure) AS measure,
    coalesce(s."left", 0) AS left_by_sql, coalesce(s."right", 0) AS right_by_sql,
    CASE WHEN s.id = 'T14' THEN left_by_sql ELSE coalesce(n."left", 0) END AS left_of_night,
    CASE WHEN s.id = 'T14' THEN left_by_sql ELSE coalesce(n."right", 0) END AS right_of_night,
    left_by_sql = right_by_sql AND left_by_sql = left_of_night AND right_by_sql = right_of_night AS agrees
FROM by_sql s
FULL JOIN (FROM 'proof/totals.parquet' WHERE id <> 'T14') n
    ON s.id = n.id AND s.name = n.name AND s.merchant_id = n.merchant_id AND s.account_id = n.account_id AND s.currency = n.currency AND s.measure = n.measure;

SELECT * EXCLUDE (agrees) FROM held WHERE NOT agrees ORDER BY ALL;

SELECT count(*) AS figures_compared, count_if(NOT agrees) AS that_do_not_agree,
    CASE WHEN count_if(NOT agrees) = 0 THEN 'PROVEN' ELSE 'NOT PROVEN' END AS proof
FROM held;
