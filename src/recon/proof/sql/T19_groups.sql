-- Fees, reserves and payouts of settlement and ledger differ by the effects of their groups.
SELECT
    'T19' AS id, CASE kind WHEN 'payouts' THEN 'payouts' ELSE kind END || ': settled - booked = effects' AS name,
    merchant_id, account_id, currency, 'amount' AS measure, sum(gap) AS "left", sum(effect) AS "right"
FROM group_sides
GROUP BY ALL;
