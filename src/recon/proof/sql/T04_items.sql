-- Every row in scope is matched, pending, broken or unverified, and its set is in the result.
SELECT
    'T4' AS id, source || ': in scope = matched + pending + broken + unverified' AS name,
    merchant_id, account_id, currency, 'count' AS measure,
    sum(items) AS "left", coalesce(sum(items) FILTER (is_reported), 0) AS "right"
FROM placed
GROUP BY ALL;
