-- What the gateway owes and keeps in reserve is listed, item by item.
WITH lines AS (
    SELECT *, entry_type = 'payout' AND own_reference = '' AS is_pay_out FROM 'inputs/settlement.parquet'
),
accounts AS (SELECT DISTINCT merchant_id, account_id FROM lines),
sides AS (
    SELECT 'payable' AS what, merchant_id, account_id, currency, CASE WHEN is_pay_out THEN -net ELSE net END AS owed, 0 AS listed FROM lines
    UNION ALL
    SELECT 'reserve', merchant_id, account_id, currency,
        CASE WHEN NOT is_pay_out AND replace(entry_type, '_reversal', '') = 'reserve' THEN -gross ELSE 0 END, 0
    FROM lines
    UNION ALL
    SELECT replace(t.name, 'opening_', ''), a.merchant_id, a.account_id, t.key, t.number, 0
    FROM accounts a CROSS JOIN 'inputs/terms.parquet' t WHERE t.name IN ('opening_payable', 'opening_reserve')
    UNION ALL
    SELECT CASE what WHEN 'reserve' THEN 'reserve' ELSE 'payable' END, merchant_id, account_id, currency, 0, amount
    FROM 'results/held.parquet'
)
SELECT
    'T18' AS id,
    CASE what WHEN 'payable' THEN 'payable: opening + lines - payouts = listed'
              ELSE 'reserve: opening + kept - released = listed' END AS name,
    merchant_id, account_id, currency, 'amount' AS measure, sum(owed) AS "left", sum(listed) AS "right"
FROM sides
GROUP BY ALL;
