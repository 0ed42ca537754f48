-- Each journal balances, and what is accrued on the last day is taken back on the next.
WITH accrued AS (
    SELECT currency, sum(amount) AS amount FROM (
        SELECT currency, booked_by - moved_by AS amount FROM differing WHERE side = 'closing' AND key = 'fees'
        UNION ALL
        SELECT j.currency, coalesce(j.debit, 0) - coalesce(j.credit, 0)
        FROM dated_journals j JOIN newest_breaks b USING (break_id), month
        WHERE j.account IN (FROM clearing) AND b.code LIKE 'FEE_%' AND j.date <= month.last)
    WHERE EXISTS (FROM booking WHERE fees <> '') AND EXISTS (FROM books_given)
    GROUP BY currency HAVING sum(amount) <> 0
      AND currency IN (SELECT currency FROM differing WHERE side = 'closing' AND key = 'fees')
),
lines AS (
    SELECT 'permanent' AS kind, journal_id, date, currency, account, coalesce(debit, 0) AS debit, coalesce(credit, 0) AS credit FROM dated_journals
    UNION ALL SELECT 'accrual', 'accrual', '', currency, fees, greatest(amount, 0), greatest(-amount, 0) FROM accrued, booking
    UNION ALL SELECT 'accrual', 'accrual', '', currency, clearing, greatest(-amount, 0), greatest(amount, 0) FROM accrued, booking
    UNION ALL SELECT 'reversal', 'reversal', '', currency, clearing, greatest(amount, 0), greatest(-amount, 0) FROM accrued, booking
    UNION ALL SELECT 'reversal', 'reversal', '', currency, fees, greatest(-amount, 0), greatest(amount, 0) FROM accrued, booking
),
unlike AS (SELECT journal_id, date, currency FROM lines GROUP BY ALL HAVING sum(debit) <> sum(credit))
SELECT 'P7' AS id, 'journals whose debits are not their credits' AS name, '' AS currency, 'count' AS measure,
    (SELECT count(*) FROM unlike) AS "left", 0 AS "right"
UNION ALL
SELECT 'P7', 'debits = credits of all journals', currency, 'amount', sum(debit)::BIGINT, sum(credit)::BIGINT
FROM lines GROUP BY currency
UNION ALL
SELECT 'P7', 'accruals + reversals = 0', currency, 'amount',
    coalesce(sum(debit - credit) FILTER (kind = 'accrual'), 0)::BIGINT, -coalesce(sum(debit - credit) FILTER (kind = 'reversal'), 0)::BIGINT
FROM lines, booking WHERE kind <> 'permanent' AND account = clearing GROUP BY currency;
