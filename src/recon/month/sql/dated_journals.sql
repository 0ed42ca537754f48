-- What the newest night proposes, by the day on which it is booked: by as much as was open at the close of an order and
-- account (and was made even by nothing that was booked or took place since), on the month's last day, the rest on its
-- own. Fees are accrued; payouts and what arrived at the bank go whole, by the age of their break.
CREATE OR REPLACE TEMP TABLE dated_journals AS
WITH keyed AS (
    SELECT b.break_id, b.code, b.age_days >= booking.age_of_month AS is_old,
        CASE WHEN b.code = 'BANK_NOT_BOOKED' THEN '' WHEN b.code LIKE 'RESERVE_%' THEN 'reserves'
             WHEN b.order_no <> '' THEN b.order_no
             WHEN p.order_no IS NOT NULL THEN p.order_no
             WHEN b.transaction_id <> '' THEN b.transaction_id
             WHEN b.code LIKE 'PAYOUT_%' OR b.code LIKE 'LEDGER_PAYOUT%' THEN 'payouts' ELSE '' END AS key
    FROM newest_breaks b LEFT JOIN payments_of p ON p.payment = nullif(b.transaction_id, ''), booking
),
written AS (
    SELECT j.*, coalesce(j.debit, 0) + coalesce(j.credit, 0) AS size, coalesce(j.debit, 0) > 0 AS is_debit,
        j.date > month.last AS is_later, row_number() OVER () AS place
    FROM journals j, month
),
later AS (
    SELECT w.*, k.code, k.key, k.is_old, w.account <> booking.clearing AND k.key <> '' AS is_counter,
        CASE WHEN w.is_debit THEN -w.size ELSE w.size END AS amount
    FROM written w JOIN keyed k USING (break_id), booking WHERE w.is_later
),
sides AS (
    SELECT f.currency, CASE WHEN f.kind IN ('pay_out', 'payee') THEN 'payouts' WHEN f.kind = 'reserve' THEN 'reserves'
            WHEN f.order_no <> '' THEN f.order_no ELSE f.payment END AS key,
        f.kind, f.event_on AS day, CASE WHEN f.kind = 'reserve' THEN -f.amount ELSE f.amount END AS moved, 0 AS booked
    FROM facts f
    UNION ALL
    SELECT currency, CASE WHEN base = 'reserve' THEN 'reserves' ELSE key END, base, day, 0,
        CASE WHEN base = 'reserve' THEN -whole ELSE amount END
    FROM (SELECT *, replace(entry_type, '_reversal', '') AS base FROM entries)
),
still_open AS (
    SELECT currency, key, account, still,
        sign(gap) * greatest(0, abs(gap) - CASE WHEN key = 'payouts' THEN 0
            -- Of a balance nobody knows which booking answers which movement: they count against each other.
            WHEN key = 'reserves' THEN greatest(0, -sign(gap) * (booked_later - moved_later))
            ELSE greatest(0, -sign(gap) * booked_later) + greatest(0, sign(gap) * moved_later) END) AS open
    FROM (
        SELECT s.currency, s.key, o.account, sum(booked - moved) AS still,
            coalesce(sum(booked - moved) FILTER (day <= last), 0) AS gap,
            coalesce(sum(booked) FILTER (day > last), 0) AS booked_later, coalesce(sum(moved) FILTER (day > last), 0) AS moved_later
        FROM sides s JOIN booked_on o USING (kind), month
        WHERE s.key IN (SELECT key FROM later) GROUP BY ALL)
),
counter AS (
    SELECT l.*, sum(amount) OVER p AS total,
        CASE WHEN l.key = 'reserves' AND s.still <> -sum(amount) OVER p THEN 0 ELSE coalesce(s.open, 0) END AS open
    FROM (FROM later WHERE is_counter AND (key <> 'payouts' OR is_old)) l
    LEFT JOIN still_open s USING (currency, key, account)
    WHERE EXISTS (FROM ledger_given)
    WINDOW p AS (PARTITION BY l.currency, l.key, l.account)
),
shared AS (
    SELECT *, CASE
        WHEN sign(total) = -sign(open) AND total <> 0 AND abs(total) <= abs(open) THEN size
        WHEN key = 'payouts' THEN 0
        ELSE least(own, greatest(0, abs(open) - (sum(own) OVER (
            PARTITION BY currency, key, account ORDER BY journal_id, size, place ROWS UNBOUNDED PRECEDING) - own))) END AS share
    FROM (SELECT *, CASE WHEN sign(amount) = -sign(open) THEN size ELSE 0 END AS own FROM counter)
),
-- The other line of each pair: of the same journal and size, on the other side.
beside AS (
    SELECT o.place, c.share
    FROM (SELECT *, row_number() OVER (PARTITION BY journal_id, currency, size, is_debit ORDER BY place) AS nth
          FROM later WHERE NOT is_counter) o
    JOIN (SELECT l.journal_id, l.currency, l.size, NOT l.is_debit AS is_debit, s.share,
              row_number() OVER (PARTITION BY l.journal_id, l.currency, l.size, l.is_debit ORDER BY l.place) AS nth
          FROM (FROM later WHERE is_counter) l LEFT JOIN shared s USING (place)) c
        USING (journal_id, currency, size, is_debit, nth)
),
shares AS (
    SELECT place, share FROM shared
    UNION ALL SELECT place, share FROM beside WHERE share IS NOT NULL
    UNION ALL SELECT place, size FROM later WHERE code = 'BANK_NOT_BOOKED' AND is_old AND EXISTS (FROM ledger_given)
),
parts AS (
    SELECT w.* REPLACE (CASE WHEN d.is_of_month THEN month.last ELSE w.date END AS date), d.part
    FROM written w LEFT JOIN (SELECT place, sum(share)::BIGINT AS share FROM shares GROUP BY place) s USING (place),
        LATERAL (SELECT true AS is_of_month, coalesce(s.share, 0) AS part
                 UNION ALL SELECT false, w.size - coalesce(s.share, 0)) d, month
    WHERE d.part <> 0
)
SELECT * EXCLUDE (size, is_debit, is_later, part)
    REPLACE (CASE WHEN is_debit THEN part ELSE 0 END AS debit, CASE WHEN is_debit THEN 0 ELSE part END AS credit)
FROM parts;

-- All that is to be booked: what was charged by the close and is booked by no journal of the month is accrued on the
-- last day and taken back on the next.
CREATE OR REPLACE TEMP TABLE month_journals AS
WITH accrued AS (
    SELECT currency, sum(amount) AS amount FROM (
        SELECT currency, amount FROM listed_differences WHERE side = 'closing' AND key = 'fees'
        UNION ALL
        SELECT j.currency, j.debit - j.credit
        FROM dated_journals j JOIN newest_breaks b USING (break_id), month
        WHERE j.account IN (FROM clearing) AND b.code LIKE 'FEE_%' AND j.date <= month.last)
    WHERE EXISTS (FROM booking WHERE fees <> '') AND EXISTS (FROM ledger_given)
    GROUP BY currency HAVING sum(amount) <> 0
      AND currency IN (SELECT currency FROM listed_differences WHERE side = 'closing' AND key = 'fees')
),
both_days AS (
    SELECT w.kind, w.date, a.currency, a.amount * w.way AS amount FROM accrued a,
        (SELECT 'accrual' AS kind, last AS date, 1 AS way FROM month UNION ALL SELECT 'reversal', first_after, -1 FROM month) w
)
SELECT 'permanent' AS kind, journal_id, date, account, debit, credit, currency, order_no, break_id, text, place FROM dated_journals
UNION ALL
SELECT kind, kind || '-fees-' || currency || '-' || month_name, date,
    CASE WHEN is_debit = (amount > 0) THEN fees ELSE clearing END,
    CASE WHEN is_debit THEN abs(amount) ELSE 0 END::BIGINT, CASE WHEN is_debit THEN 0 ELSE abs(amount) END::BIGINT, currency,
    '', '', 'fees of ' || month_name || ', ' || kind, CASE WHEN is_debit THEN 1 ELSE 2 END
FROM both_days, (SELECT unnest([true, false]) AS is_debit), booking, month;
