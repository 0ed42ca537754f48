-- The difference of two sides is the sum of the effects of breaks and of the other result lists.
WITH nets AS (
    SELECT
        merchant_id, account_id, currency,
        coalesce(sum(net) FILTER (source = 'orders'), 0) AS orders,
        coalesce(sum(net) FILTER (source = 'gateway'), 0) AS gateway,
        coalesce(sum(net) FILTER (source IN ('payouts', 'fees', 'reserves')), 0) AS payouts,
        coalesce(sum(net) FILTER (source = 'ledger'), 0) AS ledger
    FROM placed GROUP BY ALL
),
calm AS (
    SELECT merchant_id, account_id, currency, effect_orders, effect_ledger FROM 'results/matches.parquet'
    UNION ALL SELECT merchant_id, account_id, currency, effect_orders, effect_ledger FROM 'results/pending.parquet'
    UNION ALL SELECT merchant_id, account_id, currency, effect_orders, effect_ledger FROM 'results/unverified.parquet'
    UNION ALL
    SELECT merchant_id, account_id, currency,
        CASE WHEN leg = 'orders' THEN amount END, CASE WHEN leg = 'ledger' THEN amount END
    FROM 'results/effects.parquet'
),
effects AS (
    SELECT merchant_id, account_id, currency,
        coalesce(sum(effect_orders), 0) AS orders, coalesce(sum(effect_ledger), 0) AS ledger
    FROM calm GROUP BY ALL
),
sides AS (
    SELECT 'T5A' AS id, 'gateway - orders = effects' AS name, merchant_id, account_id, currency,
        gateway - orders AS net, 0 AS effect FROM nets
    UNION ALL SELECT 'T5B', 'gateway and payouts - ledger = effects', merchant_id, account_id, currency, gateway + payouts - ledger, 0 FROM nets
    UNION ALL SELECT 'T5C', 'orders and payouts - ledger = effects', merchant_id, account_id, currency, orders + payouts - ledger, 0 FROM nets
    -- Orders have no fees, reserves and payouts of the settlement: T5C leaves them out.
    UNION ALL SELECT 'T5C', 'orders and payouts - ledger = effects', merchant_id, account_id, currency, -gap, -effect FROM group_sides
    UNION ALL SELECT 'T5A', 'gateway - orders = effects', merchant_id, account_id, currency, 0, orders FROM effects
    UNION ALL SELECT 'T5B', 'gateway and payouts - ledger = effects', merchant_id, account_id, currency, 0, ledger FROM effects
    UNION ALL SELECT 'T5C', 'orders and payouts - ledger = effects', merchant_id, account_id, currency, 0, ledger - orders FROM effects
)
SELECT id, name, merchant_id, account_id, currency, 'amount' AS measure, sum(net) AS "left", sum(effect) AS "right"
FROM sides
WHERE id = 'T5A' OR 'ledger' IN (FROM given)
GROUP BY ALL;
