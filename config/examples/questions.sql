-- Questions for `recon sql`, one SELECT each (docs/WORKBOOK.md#questions-in-sql).

-- Breaks by the month that first showed them, and code
SELECT left(first_night, 7) AS month, code, currency, count(*) AS breaks, sum(exposure) AS exposure
FROM (
    SELECT break_id, currency, min(business_date) AS first_night, max_by(code, business_date) AS code,
        max_by(exposure, business_date) AS exposure
    FROM breaks WHERE is_newest GROUP BY ALL
)
GROUP BY ALL ORDER BY ALL;

-- Breaks that share a cause
SELECT cause, code, count(*) AS breaks FROM breaks WHERE is_last AND cause <> '' GROUP BY ALL ORDER BY ALL;

-- Verdicts by month
SELECT left(business_date, 7) AS month, verdict, count(*) AS nights FROM nights WHERE is_newest GROUP BY ALL ORDER BY ALL;

-- Money at risk for each account, on its last night
SELECT merchant_id, account_id, currency, sum(exposure) AS exposure FROM breaks WHERE is_last GROUP BY ALL ORDER BY ALL;

-- The ten oldest open breaks
SELECT first_seen, order_no, code, currency, exposure FROM breaks
WHERE is_last ORDER BY first_seen, exposure DESC, order_no LIMIT 10;

-- What became of breaks, night by night
SELECT business_date, movement, count(*) AS breaks FROM movements WHERE is_newest GROUP BY ALL ORDER BY ALL;

-- How many sets matched by which rule
SELECT business_date, rule, count(*) AS sets FROM matches WHERE is_newest GROUP BY ALL ORDER BY ALL;

-- Days from capture to settlement
SELECT currency, count(*) AS payments, round(avg(days), 1) AS days
FROM (
    SELECT DISTINCT s.merchant_id, s.account_id, s.transaction_id, s.currency,
        date_diff('day', a.transaction_date::DATE, s.settled_on::DATE) AS days
    FROM settlement s JOIN answers a USING (run_id, merchant_id, account_id, transaction_id)
    WHERE s.entry_type = 'capture' AND s.is_newest
)
GROUP BY ALL ORDER BY ALL;

-- Control totals that did not tie
SELECT business_date, id, name, currency, "left", "right" FROM totals WHERE is_newest AND "left" <> "right" ORDER BY ALL;

-- What people decided
SELECT business_date, decision, count(*) AS decisions FROM decisions GROUP BY ALL ORDER BY ALL;
