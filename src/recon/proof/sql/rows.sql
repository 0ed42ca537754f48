-- Tables that all control totals read: every input row that counts, its net, and the set and state
-- that the result gives it. Run first; each total is then one SELECT.
--
-- Identical rows count once; a newer row replaces an older one; rows that conflict all count, ledger
-- entries then with a net of 0. `result_items` are the rows of results/items. A set that agrees on every
-- side is not among them: it has one row in the matches, with the rule `exact`.

CREATE OR REPLACE TEMP VIEW answers AS
FROM 'inputs/answers.parquet';

CREATE OR REPLACE TEMP TABLE given AS
SELECT key AS source FROM 'inputs/terms.parquet' WHERE name = 'given';

CREATE OR REPLACE TEMP TABLE result_items AS
WITH reported AS (
    FROM 'results/items.parquet'
    -- A repeat of another row counts as no item, and has a row of its own where that other row is in a group.
    QUALIFY items > 0 OR max(items) OVER (PARTITION BY source, merchant_id, account_id, order_no, transaction_id, reference_no, entry_id, currency) = 0
),
-- Pending and unverified sets have no id in their lists: orders are found by number, groups by key.
listed AS (
    SELECT DISTINCT state, merchant_id, account_id, CASE WHEN order_no = '' THEN entry_id ELSE order_no END AS set_key, true AS is_listed
    FROM (
        SELECT 'PENDING' AS state, merchant_id, account_id, order_no, entry_id FROM 'results/pending.parquet'
        UNION ALL SELECT 'UNVERIFIED', merchant_id, account_id, order_no, entry_id FROM 'results/unverified.parquet'
    )
)
-- Whether the set is in the result, under the id that the row has.
SELECT reported.*,
    state IN ('PENDING', 'UNVERIFIED') AND (set_kind NOT IN ('order', 'group') OR coalesce(is_listed, false))
    OR state = 'BREAK' AND result_id IN (SELECT break_id FROM 'results/breaks.parquet')
    OR state = 'MATCHED' AND result_id IN (SELECT match_id FROM 'results/matches.parquet') AS is_reported
FROM reported LEFT JOIN listed USING (state, merchant_id, account_id, set_key);

-- `is_alone`: no row of its order is in `result_items`, so that all of them belong to the exact set.
CREATE OR REPLACE TEMP TABLE exact AS
WITH sets AS (
    SELECT match_id, merchant_id, account_id, order_no, entry_id, currency, order_amount AS amount
    FROM 'results/matches.parquet' WHERE rule = 'exact'
)
SELECT *,
    NOT EXISTS (FROM result_items j WHERE j.merchant_id = s.merchant_id AND j.account_id = s.account_id AND j.order_no = s.order_no) AS is_alone
FROM sets s
WHERE match_id NOT IN (SELECT set_id FROM result_items);

-- Orders -----------------------------------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE counted_orders AS
WITH several AS (
    SELECT merchant_id, account_id, order_no FROM 'inputs/orders.parquet'
    GROUP BY ALL HAVING count(*) > 1
),
reported AS (
    SELECT DISTINCT COLUMNS(* EXCLUDE (source, line))
    FROM 'inputs/orders.parquet' SEMI JOIN several USING (merchant_id, account_id, order_no)
),
newest AS (
    SELECT *, coalesce(updated_at, '-infinity') = max(coalesce(updated_at, '-infinity')) OVER (
        PARTITION BY merchant_id, account_id, order_no) AS is_newest
    FROM reported
),
current_rows AS (
    SELECT * EXCLUDE (source, line)
    FROM 'inputs/orders.parquet' ANTI JOIN several USING (merchant_id, account_id, order_no)
    UNION ALL BY NAME
    SELECT * EXCLUDE (is_newest) FROM newest
    QUALIFY is_newest OR 1 <> count_if(is_newest) OVER (
        PARTITION BY merchant_id, account_id, order_no)
)
SELECT
    merchant_id, account_id, order_no, transaction_id, currency, status,
    CASE
        WHEN status = 'paid' THEN coalesce(expected_captured_amount, amount)
        WHEN status IN ('partially_refunded', 'refunded') THEN
            coalesce(expected_captured_amount, amount)
            - CASE WHEN status = 'refunded'
                   THEN coalesce(refund_amount, expected_captured_amount, amount)
                   ELSE coalesce(refund_amount, 0) END
        ELSE 0
    END AS net
FROM current_rows;

-- Gateway answers --------------------------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE counted_answers AS
WITH found AS NOT MATERIALIZED (
    SELECT * EXCLUDE (source, line) FROM answers WHERE answer = 'found'
),
-- Only for payments with several rows it matters to which set each row went.
several AS (
    SELECT merchant_id, account_id, transaction_id FROM found GROUP BY ALL HAVING count(*) > 1
),
reported AS (
    SELECT DISTINCT f.*, coalesce(j.set_id, f.order_no) AS set_of
    FROM (FROM found SEMI JOIN several USING (merchant_id, account_id, transaction_id)) f
    LEFT JOIN result_items j
        ON j.source = 'gateway'
        AND j.merchant_id = f.merchant_id AND j.account_id = f.account_id AND j.order_no = f.order_no AND j.transaction_id = f.transaction_id AND j.reference_no = f.reference_no AND j.currency = f.currency
),
newest AS (
    SELECT *, coalesce(queried_at, '-infinity') = max(coalesce(queried_at, '-infinity')) OVER (
        PARTITION BY merchant_id, account_id, set_of, transaction_id) AS is_newest
    FROM reported
),
current_rows AS (
    FROM found ANTI JOIN several USING (merchant_id, account_id, transaction_id)
    UNION ALL BY NAME
    SELECT * EXCLUDE (set_of, is_newest) FROM newest
    QUALIFY is_newest OR 1 <> count_if(is_newest) OVER (
        PARTITION BY merchant_id, account_id, set_of, transaction_id)
),
-- A refund whose amount the query does not show is taken from the settlement: lines that name the
-- payment, and lines that name only its order, where that has one payment.
settled_refunds AS (
    SELECT merchant_id, account_id, currency, transaction_id, order_no, -sum(gross) AS refunded
    FROM 'inputs/settlement.parquet' WHERE entry_type IN ('refund', 'refund_reversal')
    GROUP BY ALL
),
of_payments AS (
    SELECT merchant_id, account_id, currency, transaction_id, sum(refunded) AS refunded
    FROM settled_refunds WHERE transaction_id <> '' GROUP BY ALL
),
of_orders AS (
    SELECT merchant_id, account_id, currency, order_no, sum(refunded) AS refunded
    FROM settled_refunds WHERE transaction_id = '' AND order_no <> '' GROUP BY ALL
),
single AS (
    SELECT merchant_id, account_id, order_no
    FROM found SEMI JOIN of_orders USING (merchant_id, account_id, order_no)
    GROUP BY ALL HAVING count(DISTINCT transaction_id) = 1
),
means AS (
    SELECT label = 'authorised' AS authorised FROM 'inputs/terms.parquet' WHERE name = 'amount_means'
),
gross AS (
    SELECT
        k.merchant_id, k.account_id, k.order_no, k.transaction_id, k.reference_no, k.currency,
        coalesce(t.label, 'unmapped') AS payment,
        k.captured_amount IS NOT NULL OR NOT m.authorised AS captured_known,
        CASE WHEN m.authorised THEN coalesce(k.authorised_amount, k.amount)
             ELSE k.authorised_amount END AS authorised,
        CASE WHEN payment IN ('paid', 'partially_refunded', 'refunded', 'chargeback')
             THEN coalesce(k.captured_amount, k.amount, 0) ELSE 0 END AS captured,
        CASE WHEN payment = 'refunded' AND k.refunded_amount IS NULL THEN captured
             WHEN payment IN ('paid', 'partially_refunded', 'refunded', 'chargeback')
             THEN coalesce(k.refunded_amount, CASE WHEN payment = 'partially_refunded'
                 THEN greatest(coalesce(p.refunded, 0) + coalesce(o.refunded, 0), 0) END, 0)
             ELSE 0 END AS refunded
    FROM current_rows k
    LEFT JOIN of_payments p USING (merchant_id, account_id, currency, transaction_id)
    LEFT JOIN (FROM of_orders SEMI JOIN single USING (merchant_id, account_id, order_no)) o
        USING (merchant_id, account_id, currency, order_no)
    CROSS JOIN means m
    LEFT JOIN 'inputs/terms.parquet' t ON t.name = 'payment_status' AND t.key = k.payment_status
)
SELECT *, CASE WHEN payment IN ('paid', 'partially_refunded', 'refunded')
               THEN captured - refunded ELSE 0 END AS net
FROM gross;

-- Instructions -----------------------------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE counted_instructions AS
WITH reported AS (
    SELECT DISTINCT COLUMNS(* EXCLUDE (source, line)) FROM 'inputs/instructions.parquet'
),
newest AS (
    SELECT *,
        coalesce(outcome_at, sent_at, approved_at, '-infinity') AS since,
        since = max(since) OVER (PARTITION BY merchant_id, account_id, instruction_id) AS is_newest
    FROM reported
)
SELECT * EXCLUDE (since, is_newest) FROM newest
QUALIFY is_newest OR 1 <> count_if(is_newest) OVER (
    PARTITION BY merchant_id, account_id, instruction_id);

-- The ledger -------------------------------------------------------------------------------------
-- Entries of our payouts: those that name one, and reversals of these.
CREATE OR REPLACE TEMP TABLE paid AS
WITH names AS (
    SELECT merchant_id, account_id, unnest([request_id, transaction_id, instruction_id, order_no]) AS name
    FROM counted_instructions
    WHERE kind = 'payout' AND state IN ('confirmed', 'resolved_applied', 'in_flight', 'in_doubt', 'needs_human', 'rejected', 'resolved_not_applied')
),
entries AS (
    SELECT merchant_id, account_id, entry_id, reverses_entry_id, unnest([reference_no, transaction_id, order_no]) AS name
    FROM 'inputs/ledger.parquet' WHERE entry_type IN ('payout', 'payout_reversal')
),
named AS (
    SELECT DISTINCT merchant_id, account_id, entry_id
    FROM entries SEMI JOIN names USING (merchant_id, account_id, name) WHERE name <> ''
),
of_them AS (
    SELECT merchant_id, account_id, entry_id, unnest([entry_id, reverses_entry_id]) AS other FROM entries
)
SELECT DISTINCT o.merchant_id, o.account_id, o.entry_id
FROM of_them o JOIN named n ON n.merchant_id = o.merchant_id AND n.account_id = o.account_id AND n.entry_id = o.other;

CREATE OR REPLACE TEMP TABLE counted_entries AS
WITH entries AS NOT MATERIALIZED (
    SELECT *, replace(entry_type, '_reversal', '') AS base, ends_with(entry_type, '_reversal') AS is_back
    FROM 'inputs/ledger.parquet'
),
several AS (
    SELECT merchant_id, account_id, entry_id FROM entries GROUP BY ALL HAVING count(*) > 1
),
reported AS (
    SELECT DISTINCT COLUMNS(* EXCLUDE (source, line))
    FROM entries SEMI JOIN several USING (merchant_id, account_id, entry_id)
),
current_rows AS (
    SELECT * EXCLUDE (source, line), false AS in_conflict
    FROM entries ANTI JOIN several USING (merchant_id, account_id, entry_id)
    UNION ALL BY NAME
    SELECT *, 1 < count(*) OVER (PARTITION BY merchant_id, account_id, entry_id) AS in_conflict FROM reported
)
SELECT
    k.merchant_id, k.account_id, k.order_no, k.transaction_id, k.reference_no, k.entry_id,
    CASE WHEN k.transaction_amount IS NOT NULL AND k.transaction_currency <> ''
         THEN k.transaction_currency ELSE k.currency END AS currency,
    k.base, k.is_back, k.in_conflict,
    p.entry_id IS NOT NULL AS is_payout,
    -- Fees, reserves and payouts of the gateway are in groups, with the entries that write a group off.
    k.base IN ('fee', 'reserve', 'payout') AND NOT is_payout AND NOT k.in_conflict
        AND s.source IS NOT NULL AS is_kept,
    c.entry_id IS NOT NULL AS is_closer,
    NOT is_kept AND NOT is_closer AND (
        p.entry_id IS NOT NULL
        OR k.base NOT IN ('fee', 'reserve', 'payout', 'bank') AND (k.base <> 'adjustment' OR k.order_no <> ''))
        AS is_compared,
    coalesce(k.transaction_amount, k.amount) AS moved,
    CASE WHEN is_kept THEN moved * CASE WHEN k.is_back THEN 1 ELSE -1 END
         WHEN is_compared AND NOT k.in_conflict
         THEN moved * CASE WHEN k.is_back THEN -1 ELSE 1 END
            * CASE k.base WHEN 'capture' THEN 1 WHEN 'adjustment' THEN 1 WHEN 'refund' THEN -1
                          WHEN 'chargeback' THEN -1 WHEN 'payout' THEN -1 ELSE 0 END
         ELSE 0 END AS net
FROM current_rows k
LEFT JOIN paid p USING (merchant_id, account_id, entry_id)
LEFT JOIN (
    SELECT merchant_id, account_id, entry_id FROM result_items
    WHERE source = 'ledger' AND set_kind = 'group'
) c ON c.merchant_id = k.merchant_id AND c.account_id = k.account_id AND c.entry_id = k.entry_id
    AND k.base IN ('write_off', 'adjustment')
LEFT JOIN given s ON s.source = 'settlement';

-- Payouts, and settlement lines about a payment -------------------------------------------------
CREATE OR REPLACE TEMP TABLE counted_payouts AS
SELECT
    merchant_id, account_id, order_no, transaction_id, '' AS reference_no, instruction_id AS entry_id, currency,
    CASE WHEN state IN ('confirmed', 'resolved_applied') THEN -amount ELSE 0 END AS net
FROM counted_instructions
WHERE kind = 'payout' AND state IN ('confirmed', 'resolved_applied', 'in_flight', 'in_doubt', 'needs_human', 'rejected', 'resolved_not_applied');

-- What the gateway keeps and pays out, under the key of its group. A payout that is compared as part
-- of a running balance has no group of its own.
CREATE OR REPLACE TEMP TABLE counted_kept AS
WITH lines AS (
    SELECT * EXCLUDE (source, line), entry_type = 'payout' AND own_reference = '' AS is_pay_out,
        replace(entry_type, '_reversal', '') AS base
    FROM 'inputs/settlement.parquet'
),
per AS (SELECT label AS fees_per FROM 'inputs/terms.parquet' WHERE name = 'fees_per'),
every AS (
    SELECT 'fees' AS source, l.*, -l.fee AS moved,
        CASE p.fees_per
            WHEN 'payment' THEN CASE WHEN transaction_id <> '' THEN transaction_id WHEN order_no <> '' THEN order_no ELSE 'unassigned' END
            WHEN 'batch' THEN batch_id WHEN 'day' THEN settled_on WHEN 'month' THEN left(settled_on, 7)
            ELSE '' END AS name
    FROM lines l CROSS JOIN per p WHERE NOT is_pay_out AND fee <> 0
    UNION ALL BY NAME
    SELECT 'reserves' AS source, *, gross AS moved, '' AS name FROM lines WHERE NOT is_pay_out AND base = 'reserve' AND gross <> 0
    UNION ALL BY NAME
    SELECT 'payouts' AS source, *, -net AS moved, batch_id AS name FROM lines WHERE is_pay_out
),
keyed AS (
    SELECT *, CASE source WHEN 'payouts' THEN 'payout' ELSE source END || ':' || currency AS balance_key,
        balance_key || CASE WHEN name = '' THEN '' ELSE ':' || name END AS own_key,
        CASE source WHEN 'payouts' THEN 'payout' ELSE source END || ':' || currency || ':before_ledger' AS before_key
    FROM every
),
groups AS (
    SELECT DISTINCT merchant_id, account_id, set_key FROM result_items WHERE set_kind = 'group'
),
begun AS (
    SELECT key AS merchant_id, label AS account_id, number AS since FROM 'inputs/terms.parquet' WHERE name = 'ledger_since'
),
-- A payout that no entry names is in the running balance where there is one.
grouped AS (
    SELECT k.*, CASE WHEN k.source = 'payouts' AND own.set_key IS NULL AND running.set_key IS NOT NULL
            THEN k.balance_key ELSE k.own_key END AS group_key,
        coalesce(TRY_CAST(replace(k.settled_on, '-', '') AS BIGINT) < b.since, false) AS is_old
    FROM keyed k
    LEFT JOIN groups own ON own.merchant_id = k.merchant_id AND own.account_id = k.account_id AND own.set_key = k.own_key
    LEFT JOIN groups running ON running.merchant_id = k.merchant_id AND running.account_id = k.account_id AND running.set_key = k.balance_key
    LEFT JOIN begun b ON b.merchant_id = k.merchant_id AND b.account_id = k.account_id
),
booked AS (
    SELECT e.merchant_id, e.account_id, j.set_key AS group_key, sum(e.net) AS booked
    FROM counted_entries e
    JOIN result_items j ON j.source = 'ledger' AND j.set_kind = 'group' AND j.merchant_id = e.merchant_id
        AND j.account_id = e.account_id AND j.entry_id = e.entry_id
    SEMI JOIN begun b ON b.merchant_id = e.merchant_id AND b.account_id = e.account_id
    WHERE e.is_kept GROUP BY ALL
),
gaps AS (
    SELECT merchant_id, account_id, group_key,
        coalesce(sum(moved) FILTER (WHERE NOT is_old), 0) - coalesce(any_value(booked), 0) AS gap
    FROM grouped LEFT JOIN booked USING (merchant_id, account_id, group_key)
    GROUP BY merchant_id, account_id, group_key
),
days AS (
    SELECT merchant_id, account_id, group_key, settled_on,
        sum(sum(moved)) OVER (PARTITION BY merchant_id, account_id, group_key ORDER BY settled_on DESC) AS since_then
    FROM grouped WHERE is_old GROUP BY merchant_id, account_id, group_key, settled_on
),
-- Amounts settled before the ledger begins have a group of their own, except for the last days that make their
-- group balance: those were booked late.
late AS (
    SELECT merchant_id, account_id, group_key, max(settled_on) AS first_day
    FROM days JOIN gaps USING (merchant_id, account_id, group_key)
    WHERE gap <> 0 AND gap + since_then = 0 GROUP BY ALL
)
SELECT g.source, g.merchant_id, g.account_id, '' AS order_no, '' AS transaction_id, '' AS reference_no,
    CASE WHEN g.is_old AND (l.first_day IS NULL OR g.settled_on < l.first_day) THEN g.before_key ELSE g.group_key END AS entry_id,
    g.currency, g.moved AS net
FROM grouped g LEFT JOIN late l USING (merchant_id, account_id, group_key);

-- The difference of lines and entries of each kind, and the effects of their groups in the result.
CREATE OR REPLACE TEMP TABLE group_sides AS
WITH groups AS (
    SELECT DISTINCT merchant_id, account_id, set_currency AS currency, set_id, set_key, split_part(set_key, ':', 1) AS label
    FROM result_items WHERE set_kind = 'group'
),
calm AS (
    SELECT merchant_id, account_id, currency, entry_id, effect_ledger FROM 'results/pending.parquet' WHERE order_no = ''
    UNION ALL SELECT merchant_id, account_id, currency, entry_id, effect_ledger FROM 'results/unverified.parquet' WHERE order_no = ''
    UNION ALL SELECT merchant_id, account_id, currency, entry_id, effect_ledger FROM 'results/matches.parquet'
    WHERE rule = 'group' AND flags IN ('written_off', 'before_ledger')
),
sides AS (
    SELECT unnest(['fees', 'reserves', 'payouts']) AS kind, merchant_id, account_id, currency, 0 AS gap, 0 AS effect
    FROM 'inputs/settlement.parquet'
    UNION ALL
    SELECT source, merchant_id, account_id, currency, net, 0 FROM counted_kept
    UNION ALL
    SELECT CASE base WHEN 'fee' THEN 'fees' WHEN 'reserve' THEN 'reserves' ELSE 'payouts' END,
        merchant_id, account_id, currency, -net, 0
    FROM counted_entries WHERE is_kept
    UNION ALL
    SELECT replace(g.label, 'payout', 'payouts'), e.merchant_id, e.account_id, e.currency, 0, e.amount
    FROM 'results/effects.parquet' e JOIN groups g ON g.set_id = e.break_id WHERE e.leg = 'ledger'
    UNION ALL
    SELECT replace(g.label, 'payout', 'payouts'), c.merchant_id, c.account_id, c.currency, 0, c.effect_ledger
    FROM calm c JOIN groups g
        ON g.merchant_id = c.merchant_id AND g.account_id = c.account_id AND g.currency = c.currency AND g.set_key = c.entry_id
)
SELECT kind, merchant_id, account_id, currency, sum(gap) AS gap, coalesce(sum(effect), 0) AS effect
FROM sides
WHERE 'ledger' IN (FROM given)
GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE counted_lines AS
SELECT merchant_id, account_id, order_no, transaction_id, reference_no, '' AS entry_id, currency, gross AS net, entry_type
FROM 'inputs/settlement.parquet'
WHERE entry_type NOT IN ('payout', 'earlier')
  AND (replace(entry_type, '_reversal', '') NOT IN ('fee', 'reserve', 'adjustment')
       OR order_no <> '' OR transaction_id <> '');

-- All rows with their set and state --------------------------------------------------------------
CREATE OR REPLACE TEMP TABLE placed AS
WITH counted AS NOT MATERIALIZED (
    SELECT 'orders' AS source, merchant_id, account_id, order_no, transaction_id, '' AS reference_no, '' AS entry_id, currency, net,
        status = 'paid' AS is_plain FROM counted_orders
    UNION ALL
    SELECT 'gateway', merchant_id, account_id, order_no, transaction_id, reference_no, '', currency, net,
        payment = 'paid' AND refunded = 0 FROM counted_answers
    UNION ALL
    SELECT 'ledger', merchant_id, account_id, order_no, transaction_id, reference_no, entry_id, currency, net,
        base = 'capture' AND NOT is_back FROM counted_entries
    UNION ALL
    SELECT 'payouts', merchant_id, account_id, order_no, transaction_id, reference_no, entry_id, currency, net, false FROM counted_payouts
    UNION ALL
    SELECT source, merchant_id, account_id, order_no, transaction_id, reference_no, entry_id, currency, net, false FROM counted_kept
    UNION ALL
    SELECT 'settlement', merchant_id, account_id, order_no, transaction_id, reference_no, entry_id, currency, net, true FROM counted_lines
)
SELECT
    c.source, c.merchant_id, c.account_id, c.currency,
    -- A ledger entry belongs to an exact set when the match names that very entry.
    j.set_id IS NULL AND e.order_no IS NOT NULL AND c.source NOT IN ('payouts', 'fees', 'reserves')
        AND (c.source <> 'ledger' OR e.entry_id = c.entry_id) AS is_exact,
    CASE WHEN is_exact THEN 'MATCHED' ELSE j.state END AS state,
    is_exact OR coalesce(j.is_reported, false) AS is_reported,
    -- A row of an exact set agrees with the match: a plain state, its amount, its currency.
    is_exact AND c.is_plain AND c.net > 0 AND c.net = e.amount AND c.currency = e.currency AS is_so,
    count(*) AS items, sum(c.net) AS net
FROM counted c
LEFT JOIN exact e
    ON e.merchant_id = c.merchant_id AND e.account_id = c.account_id AND e.order_no = c.order_no
LEFT JOIN result_items j
    ON j.source = CASE WHEN e.is_alone THEN NULL ELSE c.source END
    AND j.merchant_id = c.merchant_id AND j.account_id = c.account_id
    AND j.order_no = c.order_no AND j.transaction_id = c.transaction_id
    AND j.reference_no = c.reference_no AND j.entry_id = c.entry_id AND j.currency = c.currency
GROUP BY ALL;

-- Sums over the rows of each set of `result_items` that a total needs: sets with an instruction or with a payment
-- beyond its bounds, and matches with an effect or a flag ---------------------------------------------
CREATE OR REPLACE TEMP TABLE payments AS
SELECT j.set_id, c.payment, c.captured, c.refunded, c.captured_known,
    c.refunded > c.captured OR c.captured_known AND c.captured > 0 AND c.captured > c.authorised AS is_beyond
FROM counted_answers c JOIN result_items j
    ON j.source = 'gateway'
    AND j.merchant_id = c.merchant_id AND j.account_id = c.account_id AND j.order_no = c.order_no AND j.transaction_id = c.transaction_id AND j.reference_no = c.reference_no AND j.currency = c.currency;

CREATE OR REPLACE TEMP TABLE set_facts AS
WITH asked AS (
    SELECT set_id FROM result_items WHERE source = 'instructions'
    UNION SELECT set_id FROM payments WHERE is_beyond
    UNION SELECT match_id FROM 'results/matches.parquet'
        WHERE coalesce(effect_orders, 0) <> 0 OR coalesce(effect_ledger, 0) <> 0 OR flags <> ''
),
facts AS (
    SELECT j.set_id, 1 AS tells
    FROM counted_orders c JOIN result_items j
        ON j.source = 'orders' AND j.merchant_id = c.merchant_id AND j.account_id = c.account_id AND j.order_no = c.order_no AND j.transaction_id = c.transaction_id AND j.currency = c.currency
    WHERE c.status IN ('partially_refunded', 'refunded')
    UNION ALL BY NAME
    SELECT set_id, captured, refunded,
        CASE WHEN payment = 'chargeback' THEN captured - refunded END AS charged,
        CASE WHEN NOT captured_known THEN 1 END AS guessed,
        CASE WHEN payment = 'chargeback' THEN 1 END AS charges,
        CASE WHEN payment IN ('paid', 'partially_refunded', 'refunded') THEN 1 END AS money,
        CASE WHEN payment = 'unmapped' THEN 1 END AS unmapped,
        CASE WHEN payment = 'authorised' THEN 1 END AS authorised,
        CASE WHEN is_beyond THEN 1 END AS beyond
    FROM payments
    UNION ALL BY NAME
    SELECT j.set_id,
        CASE WHEN i.kind = 'capture' AND i.state IN ('confirmed', 'resolved_applied') THEN i.amount END AS captures,
        CASE WHEN i.kind = 'refund' AND i.state IN ('confirmed', 'resolved_applied') THEN i.amount END AS refunds,
        CASE WHEN i.kind = 'cancel' AND i.state IN ('confirmed', 'resolved_applied') THEN 1 END AS cancels,
        CASE WHEN i.kind = 'refund' AND i.state IN ('confirmed', 'resolved_applied', 'in_flight', 'in_doubt', 'needs_human')
            THEN i.amount END AS refunds_maybe
    FROM counted_instructions i JOIN result_items j
        ON j.source = 'instructions'
        AND j.merchant_id = i.merchant_id AND j.account_id = i.account_id AND j.entry_id = i.instruction_id
    UNION ALL BY NAME
    SELECT j.set_id,
        CASE WHEN l.entry_type = 'chargeback' THEN -l.net END AS lines_charged,
        CASE WHEN l.entry_type <> 'chargeback' THEN -l.net END AS lines_refunded
    FROM counted_lines l JOIN result_items j
        ON j.source = 'settlement'
        AND j.merchant_id = l.merchant_id AND j.account_id = l.account_id AND j.order_no = l.order_no AND j.transaction_id = l.transaction_id AND j.reference_no = l.reference_no AND j.entry_id = l.entry_id AND j.currency = l.currency
    WHERE l.entry_type IN ('chargeback', 'refund', 'refund_reversal')
    UNION ALL BY NAME
    SELECT j.set_id, CASE WHEN c.is_back THEN -c.moved ELSE c.moved END AS written
    FROM counted_entries c JOIN result_items j
        ON j.source = 'ledger'
        AND j.merchant_id = c.merchant_id AND j.account_id = c.account_id AND j.order_no = c.order_no AND j.transaction_id = c.transaction_id AND j.reference_no = c.reference_no AND j.entry_id = c.entry_id AND j.currency = c.currency
    WHERE c.base = 'write_off' AND NOT c.in_conflict
)
SELECT set_id,
    coalesce(sum(tells), 0) AS tells, coalesce(sum(captured), 0) AS captured, coalesce(sum(refunded), 0) AS refunded,
    coalesce(sum(charged), 0) AS charged, coalesce(sum(guessed), 0) AS guessed, coalesce(sum(charges), 0) AS charges,
    coalesce(sum(money), 0) AS money, coalesce(sum(unmapped), 0) AS unmapped, coalesce(sum(authorised), 0) AS authorised,
    coalesce(sum(beyond), 0) AS beyond, coalesce(sum(captures), 0) AS captures, coalesce(sum(refunds), 0) AS refunds,
    coalesce(sum(cancels), 0) AS cancels, coalesce(sum(refunds_maybe), 0) AS refunds_maybe, coalesce(sum(written), 0) AS written,
    coalesce(sum(lines_charged), 0) AS lines_charged, coalesce(sum(lines_refunded), 0) AS lines_refunded
FROM facts SEMI JOIN asked USING (set_id)
GROUP BY set_id;

-- What is left of the effects of a match after deducting what its flags explain ---------------------
CREATE OR REPLACE TEMP TABLE left_over AS
WITH bounds AS (
    SELECT key AS currency,
        max(number) FILTER (label = 'absolute_minor_units') AS absolute,
        max(number) FILTER (label = 'basis_points') AS points
    FROM 'inputs/terms.parquet' WHERE name = 'tolerance' GROUP BY key
),
carrying AS (
    SELECT m.merchant_id, m.account_id, m.currency, m.flags,
        coalesce(m.effect_orders, 0) AS effect_orders, coalesce(m.effect_ledger, 0) AS effect_ledger,
        coalesce(m.order_amount, 0) AS order_amount, coalesce(m.gateway_amount, 0) AS gateway_amount,
        'ledger' IN (FROM given) AS covered,
        coalesce(f.tells, 0) AS tells, coalesce(f.captured, 0) AS captured, coalesce(f.refunded, 0) AS refunded,
        coalesce(f.charged, 0) AS charged, coalesce(f.guessed, 0) AS guessed,
        coalesce(f.captures, 0) AS captures, coalesce(f.refunds, 0) AS refunds,
        coalesce(f.cancels, 0) AS cancels, coalesce(f.written, 0) AS written,
        CASE WHEN f.money > 0 THEN f.lines_charged ELSE 0 END AS lines_charged, coalesce(f.lines_refunded, 0) AS lines_refunded
    FROM 'results/matches.parquet' m LEFT JOIN set_facts f ON f.set_id = m.match_id
    WHERE m.rule NOT IN ('not_compared', 'group', 'bank') AND m.match_id NOT IN (SELECT match_id FROM exact)
      AND (coalesce(m.effect_orders, 0) <> 0 OR coalesce(m.effect_ledger, 0) <> 0 OR m.flags <> '')
),
explained AS (
    SELECT *,
        contains(flags, 'instructed') AND (
            captures > 0 AND (captures = captured OR guessed > 0 AND captures <= captured)
            OR refunds > 0 AND refunds = refunded
            OR cancels > 0 AND captured = 0) AS as_instructed,
        CASE WHEN contains(flags, 'reply_only') THEN greatest(refunds - refunded, 0) ELSE 0 END AS hidden,
        CASE WHEN as_instructed AND captures > 0 AND guessed > 0 THEN captured - captures ELSE 0 END AS uncaptured,
        -- Charged back by lines while the query shows the payment with money: that much of the ledger is proven.
        CASE WHEN contains(flags, 'chargeback_booked')
             THEN greatest(0, least(lines_charged - charged, lines_charged - charged + lines_refunded - refunded - hidden)) ELSE 0 END AS by_lines,
        CASE WHEN contains(flags, 'written_off') THEN written ELSE 0 END AS off
    FROM carrying
),
first_orders AS (
    SELECT *,
        CASE WHEN as_instructed THEN 0 ELSE effect_orders - CASE WHEN tells > 0 THEN hidden ELSE 0 END END AS without_hidden,
        without_hidden + CASE WHEN contains(flags, 'chargeback_booked') AND without_hidden < 0 THEN charged ELSE 0 END AS of_orders,
        CASE WHEN covered THEN effect_ledger - hidden - uncaptured - by_lines ELSE 0 END AS of_ledger
    FROM explained
),
after_write_off AS (
    SELECT * EXCLUDE (of_orders, of_ledger),
        CASE WHEN off > 0 AND abs(of_orders) = off THEN 0 ELSE of_orders END AS of_orders,
        CASE WHEN off > 0 AND abs(of_ledger) = off THEN 0 ELSE of_ledger END AS of_ledger
    FROM first_orders
)
SELECT a.merchant_id, a.account_id, a.currency, a.of_orders, a.of_ledger,
    contains(a.flags, 'rounding') AS rounded,
    rounded
        AND abs(of_orders) <= coalesce(least(b.absolute, abs(order_amount) * b.points // 10000), 0)
        AND abs(of_ledger) <= coalesce(least(b.absolute, abs(gateway_amount) * b.points // 10000), 0) AS within
FROM after_write_off a LEFT JOIN bounds b USING (currency);
