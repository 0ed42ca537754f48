-- What settlement batches leave is listed: opening plus lines less payouts, without the batches
-- that wait for their payout.
WITH lines AS (
    SELECT *, entry_type = 'payout' AND own_reference = '' AS is_pay_out FROM 'inputs/settlement.parquet'
),
waiting AS (FROM 'results/held.parquet' WHERE what = 'no_payout'),
accounts AS (SELECT DISTINCT merchant_id, account_id FROM lines),
sides AS (
    SELECT merchant_id, account_id, currency, CASE WHEN is_pay_out THEN -net ELSE net END AS owed, 0 AS listed
    FROM lines ANTI JOIN waiting USING (merchant_id, account_id, currency, batch_id)
    UNION ALL
    -- Accounts and currencies whose batches are all open are included.
    SELECT merchant_id, account_id, currency, 0, 0 FROM lines
    UNION ALL
    SELECT a.merchant_id, a.account_id, t.key, t.number, 0
    FROM accounts a CROSS JOIN 'inputs/terms.parquet' t WHERE t.name = 'opening_payable'
    UNION ALL
    SELECT h.merchant_id, h.account_id, h.currency, 0, h.amount
    FROM 'results/held.parquet' h WHERE h.what NOT IN ('no_payout', 'reserve')
)
SELECT
    'T11' AS id, 'opening + lines - payouts of closed batches = items - debts - beyond' AS name,
    merchant_id, account_id, currency, 'amount' AS measure, sum(owed) AS "left", sum(listed) AS "right"
FROM sides
GROUP BY ALL;
