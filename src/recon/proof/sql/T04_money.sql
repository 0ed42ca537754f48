-- The net of each side is the net of its broken rows plus its amounts in the other result lists.
WITH other_lists AS (
    SELECT merchant_id, account_id, currency, order_amount, gateway_amount, ledger_amount FROM 'results/matches.parquet'
    UNION ALL SELECT merchant_id, account_id, currency, order_amount, gateway_amount, ledger_amount FROM 'results/pending.parquet'
    UNION ALL SELECT merchant_id, account_id, currency, order_amount, gateway_amount, ledger_amount FROM 'results/unverified.parquet'
),
shown_sums AS (
    SELECT merchant_id, account_id, currency, sum(order_amount) AS orders, sum(gateway_amount) AS gateway, sum(ledger_amount) AS ledger
    FROM other_lists GROUP BY ALL
),
sides AS (
    SELECT
        CASE WHEN source IN ('payouts', 'fees', 'reserves') THEN 'gateway' ELSE source END AS side, merchant_id, account_id, currency,
        net, CASE WHEN state = 'BREAK' AND is_reported THEN net ELSE 0 END AS reported
    FROM placed WHERE source <> 'settlement'
    UNION ALL SELECT 'orders', merchant_id, account_id, currency, 0, orders FROM shown_sums
    UNION ALL SELECT 'gateway', merchant_id, account_id, currency, 0, gateway FROM shown_sums
    UNION ALL SELECT 'ledger', merchant_id, account_id, currency, 0, ledger FROM shown_sums
)
SELECT
    'T4' AS id, side || ': in scope = matched + pending + broken + unverified' AS name,
    merchant_id, account_id, currency, 'amount' AS measure,
    sum(net) AS "left", coalesce(sum(reported), 0) AS "right"
FROM sides
WHERE side <> 'ledger' OR 'ledger' IN (FROM given)
GROUP BY ALL;
