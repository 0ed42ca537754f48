-- Each queried key has one final answer; an answer to a key not queried counts as -1.
WITH asked AS (
    SELECT DISTINCT merchant_id, account_id, order_no, true AS is_asked FROM 'inputs/universe.parquet'
),
answered AS (
    SELECT DISTINCT merchant_id, account_id, order_no, true AS has_answer FROM 'inputs/answers.parquet'
),
keys AS (
    SELECT merchant_id, account_id, coalesce(is_asked, false) AS is_asked, coalesce(has_answer, false) AS has_answer
    FROM asked FULL JOIN answered USING (merchant_id, account_id, order_no)
    WHERE EXISTS (FROM asked)
)
SELECT
    'T3' AS id, 'keys asked = found + not found + failed' AS name,
    merchant_id, account_id, '' AS currency, 'count' AS measure,
    count_if(is_asked) AS "left", count_if(is_asked AND has_answer) - count_if(NOT is_asked) AS "right"
FROM keys
GROUP BY ALL;
