-- What the newest night proposes, by the day on which it is booked: of what moved by the close, and takes no more than
-- is open of it (not made even by what was booked or took place since), the month's last day. Fees are accrued, and what
-- is booked beside the clearing account keeps its day.
CREATE OR REPLACE TEMP TABLE dated_journals AS
WITH keyed AS (
    SELECT b.break_id, b.code, b.age_days,
        CASE WHEN b.order_no <> '' THEN b.order_no
             WHEN p.order_no IS NOT NULL THEN p.order_no
             WHEN b.transaction_id <> '' THEN b.transaction_id
             WHEN b.code LIKE 'PAYOUT_%' OR b.code LIKE 'LEDGER_PAYOUT%' THEN 'pay-outs' ELSE '' END AS key
    FROM newest_breaks b LEFT JOIN payments_of p ON p.payment = nullif(b.transaction_id, '')
),
later AS (
    SELECT j.journal_id, j.currency, k.key,
        CASE WHEN j.account IN (FROM clearing) AND k.code NOT LIKE 'RESERVE_%' THEN coalesce(j.debit, 0) - coalesce(j.credit, 0) ELSE 0 END AS amount
    FROM journals j JOIN keyed k USING (break_id), month, booking
    WHERE j.date > month.last AND k.key <> '' AND (k.key <> 'pay-outs' OR k.age_days >= booking.age_of_month)
),
still_open AS (
    SELECT currency, key, CASE WHEN key = 'pay-outs' THEN gap
        ELSE sign(gap) * greatest(0, abs(gap) - greatest(0, -sign(gap) * booked_later) - greatest(0, sign(gap) * moved_later)) END AS gap
    FROM differing WHERE side = 'closing'
),
of_month AS (
    SELECT l.currency, l.key
    FROM (SELECT currency, key, sum(amount) AS amount FROM later GROUP BY ALL) l
    JOIN still_open d USING (currency, key)
    WHERE l.amount BETWEEN least(0, -d.gap) AND greatest(0, -d.gap) AND l.amount <> 0
      AND EXISTS (FROM books_given)
)
SELECT j.* REPLACE (
    CASE WHEN j.journal_id IN (SELECT journal_id FROM later SEMI JOIN of_month USING (currency, key))
         THEN month.last ELSE j.date END AS date)
FROM journals j, month;
