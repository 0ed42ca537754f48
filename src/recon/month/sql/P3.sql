-- What the gateway owed, with all that moved it, is what is listed; and the lines of all nights come
-- to what the newest night holds.
WITH sides AS (
    SELECT 'opening + movements = listed at the gateway' AS name, currency, amount AS "left", 0 AS "right"
    FROM open_items WHERE side = 'opening'
    UNION ALL
    SELECT 'opening + movements = listed at the gateway', f.currency, f.amount, 0
    FROM facts f, month WHERE f.event_on BETWEEN first AND last AND f.kind <> 'reserve' AND NOT f.is_outside
    UNION ALL
    SELECT 'opening + movements = listed at the gateway', currency, 0, amount FROM open_items WHERE side = 'closing'
    UNION ALL
    SELECT 'all lines of the settlement = payable and reserve of the newest night', currency, amount, held FROM (
        SELECT currency, CASE WHEN is_pay_out THEN -net WHEN base = 'reserve' THEN net - gross ELSE net END AS amount, 0 AS held FROM lines
        UNION ALL SELECT key, number, 0 FROM openings
        UNION ALL SELECT currency, 0, amount FROM held)
    WHERE EXISTS (FROM terms SEMI JOIN newest_night USING (number) WHERE name = 'given' AND key = 'settlement')
)
SELECT 'P3' AS id, name, currency, 'amount' AS measure, sum("left")::BIGINT AS "left", sum("right")::BIGINT AS "right"
FROM sides GROUP BY ALL;
