-- What was in transit, with what was paid out, came to the bank, went back and was kept, is what is listed:
-- finding by finding.
WITH sides AS (
    SELECT m.currency, m.amount AS "left", 0 AS "right" FROM transit_moves m, month WHERE m.counts_on <= before
    UNION ALL
    SELECT m.currency, m.amount, 0 FROM transit_moves m, month WHERE m.counts_on BETWEEN first AND last
    UNION ALL
    SELECT currency, 0, amount FROM open_transit WHERE side = 'closing'
)
SELECT 'P4' AS id, 'opening + paid out - at the bank + returned - kept = listed in transit' AS name,
    currency, 'amount' AS measure, sum("left")::BIGINT AS "left", sum("right")::BIGINT AS "right"
FROM sides GROUP BY ALL;
