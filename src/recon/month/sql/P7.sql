-- Each journal balances, and what is accrued on the last day is taken back on the next.
WITH unlike AS (SELECT journal_id, date, currency FROM month_journals GROUP BY ALL HAVING sum(debit) <> sum(credit))
SELECT 'P7' AS id, 'journals whose debits are not their credits' AS name, '' AS currency, 'count' AS measure,
    (SELECT count(*) FROM unlike) AS "left", 0 AS "right"
UNION ALL
SELECT 'P7', 'debits = credits of all journals', currency, 'amount', sum(debit)::BIGINT, sum(credit)::BIGINT
FROM month_journals GROUP BY currency
UNION ALL
SELECT 'P7', 'accruals + reversals = 0', currency, 'amount',
    coalesce(sum(debit - credit) FILTER (kind = 'accrual'), 0)::BIGINT, -coalesce(sum(debit - credit) FILTER (kind = 'reversal'), 0)::BIGINT
FROM month_journals, booking WHERE kind <> 'permanent' AND account = clearing GROUP BY currency;
