-- The sandbox gateway's state. Amounts are minor units, instants seconds since 1970 (virtual clock).
-- Run at every start: a state of an earlier version gets the tables that it lacks.
CREATE TABLE IF NOT EXISTS note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS payment (
    transaction_id TEXT PRIMARY KEY,
    order_no TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    currency TEXT NOT NULL,
    authorised INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    captured INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    refunds INTEGER NOT NULL,
    captured_at INTEGER NOT NULL,
    previous_state TEXT NOT NULL,
    review_flag TEXT NOT NULL,
    reference_no TEXT NOT NULL,
    page_key TEXT NOT NULL,
    -- How it was asked for and what its shopper still has to do, as JSON; never a card number.
    detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payment_order ON payment (order_no);
CREATE UNIQUE INDEX IF NOT EXISTS payment_page ON payment (page_key) WHERE page_key <> '';

CREATE TABLE IF NOT EXISTS effect (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    operation TEXT NOT NULL,
    origin TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    order_no TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount INTEGER,
    committed_at INTEGER NOT NULL,
    refund_reference_id TEXT NOT NULL,
    refund_reason TEXT NOT NULL,
    refund_reference TEXT NOT NULL,
    request_id TEXT NOT NULL,
    request_log_id TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS effect_transaction ON effect (transaction_id);
CREATE INDEX IF NOT EXISTS effect_origin ON effect (origin, operation);
CREATE TRIGGER IF NOT EXISTS effect_no_update BEFORE UPDATE ON effect
BEGIN SELECT RAISE(ABORT, 'the ledger of effects is append-only'); END;
CREATE TRIGGER IF NOT EXISTS effect_no_delete BEFORE DELETE ON effect
WHEN (SELECT value FROM note WHERE name = 'resetting') IS NULL
BEGIN SELECT RAISE(ABORT, 'the ledger of effects is append-only'); END;

CREATE TABLE IF NOT EXISTS request (
    request_log_id TEXT PRIMARY KEY,
    received_at INTEGER NOT NULL,
    operation TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    fault TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS request_row (
    request_log_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    transaction_id TEXT NOT NULL,
    order_no TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (request_log_id, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS request_row_transaction ON request_row (transaction_id);

CREATE TABLE IF NOT EXISTS draw (
    operation TEXT NOT NULL,
    row_key TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (operation, row_key)
) WITHOUT ROWID;

-- What faults let happen later: a batch that comes late, a success that turns into a failure.
CREATE TABLE IF NOT EXISTS agenda (
    number INTEGER PRIMARY KEY,
    due_at REAL NOT NULL,
    kind TEXT NOT NULL,
    what TEXT NOT NULL
);

-- What payouts took out of an account, fees included; the opening balance stands in sandbox.toml.
CREATE TABLE IF NOT EXISTS paid_out (
    account_id TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (account_id, currency)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS effect_request ON effect (request_id) WHERE request_id <> '';

-- A recurring contract of a shopper; each of its periods is one contract that is charged at its end.
CREATE TABLE IF NOT EXISTS subscription (
    recurring_id TEXT PRIMARY KEY,
    merchant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    order_no TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    contract_name TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount INTEGER NOT NULL,
    interval TEXT NOT NULL,
    interval_count INTEGER NOT NULL,
    charges_max INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    contracts INTEGER NOT NULL,
    due_at INTEGER,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS subscription_due ON subscription (due_at);

-- Saved cards: ten digits and a month, enough to pay again in the sandbox.
CREATE TABLE IF NOT EXISTS token (
    token_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    card TEXT NOT NULL,
    expires TEXT NOT NULL,
    risk_score INTEGER NOT NULL
) WITHOUT ROWID;

-- What is told to merchants' notify_url, and every attempt to deliver it.
CREATE TABLE IF NOT EXISTS notification (
    notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    operation TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    order_no TEXT NOT NULL,
    about TEXT NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    fault TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS notification_due ON notification (due_at, rank, notification_id)
WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS notification_transaction ON notification (transaction_id);
CREATE TABLE IF NOT EXISTS notification_attempt (
    notification_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (notification_id, attempt)
) WITHOUT ROWID;

-- The refund search finds refunds by the merchant's own reference.
CREATE INDEX IF NOT EXISTS effect_refund_reference ON effect (refund_reference)
WHERE refund_reference <> '';

-- Files as they were handed out, one business date after the other: they are never told otherwise.
CREATE TABLE IF NOT EXISTS handed_out (
    account_id TEXT NOT NULL,
    day TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (account_id, day, name)
) WITHOUT ROWID;

-- What must hold over the ledger of effects alone, never over the payments' states: every name counts
-- what must be 0. A double effect is an effect of the API after the first with the same key; what a
-- merchant wants of a payment (an intention) bears no reference, only the money tells two wishes
-- apart, and what the gateway itself took back stands no more. A payout names no payment.
CREATE VIEW IF NOT EXISTS moved AS
SELECT sum(CASE WHEN operation IN ('authorise', 'authorise_apm') THEN amount ELSE 0 END) AS authorised,
    sum(CASE operation WHEN 'capture' THEN amount WHEN 'capture_reversed' THEN -amount ELSE 0 END)
        AS captured,
    sum(CASE operation WHEN 'refund' THEN amount WHEN 'refund_reversed' THEN -amount ELSE 0 END)
        AS refunded
FROM effect
WHERE transaction_id IN (SELECT transaction_id FROM effect WHERE origin = 'api' AND transaction_id <> '')
GROUP BY transaction_id;
CREATE VIEW IF NOT EXISTS same_effect AS
SELECT count(*) AS times FROM effect
WHERE origin = 'api' AND operation IN ('capture', 'cancel', 'refund', 'payout')
GROUP BY operation, CASE operation WHEN 'payout' THEN request_id ELSE transaction_id END,
    CASE operation WHEN 'refund' THEN amount END,
    CASE operation WHEN 'refund' THEN refund_reason END,
    CASE operation WHEN 'refund' THEN refund_reference END;
CREATE VIEW IF NOT EXISTS intention AS
SELECT count(*) AS times FROM effect e
WHERE e.origin = 'api' AND e.operation IN ('capture', 'cancel', 'refund') AND NOT EXISTS (
    SELECT 1 FROM effect r WHERE r.transaction_id = e.transaction_id
    AND r.operation = e.operation || '_reversed' AND r.refund_reference_id = e.refund_reference_id)
GROUP BY e.merchant_id, e.account_id, e.operation, e.transaction_id, e.amount, e.currency;
CREATE VIEW IF NOT EXISTS invariant AS
SELECT 'double_effects' AS name, (SELECT coalesce(sum(times - 1), 0) FROM same_effect) AS broken
UNION ALL SELECT 'over_captured', (SELECT count(*) FROM moved WHERE captured > authorised)
UNION ALL SELECT 'over_refunded', (SELECT count(*) FROM moved WHERE refunded > captured)
UNION ALL SELECT 'effects_without_client_record', (SELECT count(*) FROM effect e
    WHERE e.origin = 'api' AND NOT EXISTS (SELECT 1 FROM request_row r
    WHERE r.request_log_id = e.request_log_id AND r.transaction_id = e.transaction_id))
UNION ALL SELECT 'double_intentions', (SELECT coalesce(sum(times - 1), 0) FROM intention);

-- Of one transaction: what a client was told of it, and what is true, each effect with the call that
-- took effect last before it.
CREATE VIEW IF NOT EXISTS told AS
SELECT r.transaction_id, q.request_log_id, q.received_at, q.operation, q.fault, r.status, r.message
FROM request_row r JOIN request q ON q.request_log_id = r.request_log_id
ORDER BY q.request_log_id, r.position;
CREATE VIEW IF NOT EXISTS happened AS
SELECT transaction_id, request_log_id, committed_at, operation, origin, amount, currency,
    refund_reference_id, CASE origin WHEN 'seed' THEN '' ELSE coalesce((
        SELECT b.request_log_id FROM effect b WHERE b.position <= e.position AND b.request_log_id <> ''
        ORDER BY b.position DESC LIMIT 1), '') END AS behind
FROM effect e ORDER BY position;
