-- Every instruction is confirmed, rejected, in doubt, waiting or withdrawn, and the effect of each
-- confirmed one was checked: its set has a state. So does that of each rejected or doubtful one,
-- except refunds of 0.00, which requested no money.
WITH moves_with_result AS (
    SELECT DISTINCT merchant_id, account_id, entry_id FROM result_items
    WHERE source = 'instructions' AND state IN ('MATCHED', 'PENDING', 'BREAK', 'UNVERIFIED')
),
moves AS (
    SELECT i.*,
        i.state IN ('confirmed', 'resolved_applied') AS is_confirmed,
        i.state IN ('confirmed', 'resolved_applied', 'rejected', 'resolved_not_applied', 'in_flight',
            'in_doubt', 'needs_human', 'planned', 'approved', 'withdrawn') AS is_known,
        j.entry_id IS NOT NULL AS has_result
    FROM counted_instructions i
    LEFT JOIN moves_with_result j
        ON j.merchant_id = i.merchant_id AND j.account_id = i.account_id AND j.entry_id = i.instruction_id
),
sides AS (
    SELECT 'instructed = confirmed + rejected + in doubt + waiting + withdrawn' AS name,
        merchant_id, account_id, currency, amount, is_known AS is_reported FROM moves
    UNION ALL
    SELECT 'confirmed = those whose effect was looked for', merchant_id, account_id, currency, amount, has_result
    FROM moves WHERE is_confirmed AND kind NOT IN ('review', 'cancel_subscription') AND amount > 0
    UNION ALL
    SELECT 'rejected + in doubt = those that were compared', merchant_id, account_id, currency, amount, has_result
    FROM moves WHERE kind <> 'review' AND NOT (kind = 'refund' AND amount = 0)
        AND state IN ('rejected', 'resolved_not_applied', 'in_flight', 'in_doubt', 'needs_human')
)
SELECT 'T8' AS id, name, merchant_id, account_id, currency, 'count' AS measure,
    count(*) AS "left", count_if(is_reported) AS "right"
FROM sides GROUP BY ALL
UNION ALL
SELECT 'T8', name, merchant_id, account_id, currency, 'amount', sum(amount), coalesce(sum(amount) FILTER (is_reported), 0)
FROM sides GROUP BY ALL;
