-- The ledger at the close, with what of the proposed journals is dated by it, differs from the gateway by what is booked in
-- another month and by what is left to decide. Journals between clearing and reserve account move neither: both are
-- counted together.
WITH proposed AS (
    SELECT j.break_id, j.currency, coalesce(sum(j.debit - j.credit) FILTER (j.date <= month.last), 0) AS amount,
        coalesce(sum(j.debit - j.credit) FILTER (j.date > month.last), 0) AS later, bool_or(j.date <= month.last) AS by_close
    FROM dated_journals j LEFT JOIN newest_breaks b USING (break_id), month
    WHERE j.account IN (FROM clearing) AND coalesce(b.code, '') NOT LIKE 'RESERVE_%'
    GROUP BY ALL
),
booked AS (
    SELECT p.*, e.amount AS effect
    FROM proposed p
    LEFT JOIN (FROM effects SEMI JOIN newest_night USING (number)) e
        ON e.break_id = p.break_id AND e.currency = p.currency AND e.leg = 'ledger'
),
sides AS (
    SELECT currency, booked_by AS "left", moved_by + timing + waits + shown AS "right" FROM differing WHERE side = 'closing'
    UNION ALL SELECT currency, amount, coalesce(effect, 0) - later FROM booked WHERE by_close
)
SELECT 'P6' AS id, 'ledger with the journals = gateway + booked in another month + left to decide' AS name, currency,
    'amount' AS measure, sum("left")::BIGINT AS "left", sum("right")::BIGINT AS "right"
FROM sides WHERE EXISTS (FROM ledger_given) GROUP BY currency
UNION ALL
SELECT 'P6', 'breaks that journals book = breaks of the night with an effect on the ledger', currency, 'count',
    count(*), count(effect)
FROM booked WHERE EXISTS (FROM ledger_given) GROUP BY currency;
