-- The flags of every match explain its effects to the minor unit.
SELECT
    'T5A' AS id, 'matches with an effect = those whose flag explains it' AS name,
    merchant_id, account_id, currency, 'count' AS measure,
    count(*) AS "left", count_if(of_orders = 0 AND of_ledger = 0 OR within) AS "right"
FROM left_over
GROUP BY ALL;
