-- Refunds are at most what was captured, captures at most what was authorised, those in doubt
-- included: sets beyond a bound have a break that says so, or were written off.
WITH beyond AS (
    SELECT set_id FROM set_facts
    WHERE (money > 0 OR authorised > 0 AND unmapped = 0) AND charges = 0
      AND (beyond > 0 OR refunds_maybe > captured)
),
paid AS (
    SELECT DISTINCT merchant_id, account_id, set_currency, set_id, result_id FROM result_items
    WHERE source = 'gateway' AND items > 0 AND state <> 'UNVERIFIED'
),
reported AS (
    SELECT break_id AS id FROM 'results/breaks.parquet'
    WHERE code IN ('OVER_REFUND', 'OVER_CAPTURE')
       OR list_has_any(string_split(flags, ';'), ['OVER_REFUND', 'OVER_CAPTURE'])
    UNION ALL
    SELECT match_id FROM 'results/matches.parquet' WHERE contains(flags, 'written_off')
),
-- Exact sets: none of them may be beyond a bound.
over_bound AS (
    SELECT c.merchant_id, c.account_id, c.currency, c.order_no
    FROM counted_answers c JOIN exact e USING (merchant_id, account_id, order_no)
    WHERE c.refunded > c.captured OR c.captured > c.authorised
),
sides AS (
    SELECT merchant_id, account_id, set_currency AS currency, 1 AS is_beyond,
        CASE WHEN result_id IN (SELECT id FROM reported) THEN 1 ELSE 0 END AS is_reported
    FROM paid WHERE set_id IN (SELECT set_id FROM beyond)
    UNION ALL
    SELECT merchant_id, account_id, currency, 1, 0 FROM over_bound
    UNION ALL
    -- A row of zeros where no set is beyond a bound: money waits for this total.
    SELECT DISTINCT merchant_id, account_id, '', 0, 0 FROM placed
)
SELECT
    'T9' AS id, 'sets beyond refunds <= captured <= authorised = those shown' AS name,
    merchant_id, account_id, currency, 'count' AS measure, sum(is_beyond) AS "left", sum(is_reported) AS "right"
FROM sides
GROUP BY ALL;
