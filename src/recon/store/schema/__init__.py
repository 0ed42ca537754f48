"""The database tables; a comment above each says what one row is. Money is BIGINT minor units.

Instants are UTC. Text columns hold "" for "not given". Together they document everything a night
did; `history` is append-only and hash-chained (see `store.database.history`).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from recon.model.resolutions import COMMENT_CHARACTERS_MAX
from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    SENDER_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    at_columns,
    business_date_column,
    count_column,
    count_columns,
    file_columns,
    id_column,
    metadata,
    payee_columns,
    text_column,
    text_columns,
)

# Runs of nights and the sources they read.


# One row per run of a night, or of a part of one (merchant, account, business date).
run = Table(
    "run",
    metadata,
    id_column("run_id", primary_key=True),
    *account_columns(),
    business_date_column(),
    Column("mode", String(10), nullable=False),
    # active, finished, stopped; part: a part that ended
    Column("status", String(10), nullable=False),
    text_column("part", 10),  # model.Part; "" for a whole night
    # why the night before has no run; "" if it has one (steps.runtime.predecessor)
    text_column("predecessor", REASON_CHARACTERS),
    text_column("step", 20),  # last finished step
    # host, process id and start time, shown in messages
    text_column("owner"),
    text_column("owner_process", 120),  # the same, machine-readable: night_lock.Process
    at_column("started_at", nullable=False),
    at_column("finished_at"),
    at_column("as_of", nullable=False),
    text_column("verdict", 20),
    *text_columns("rules_digest", "result_digest"),
    text_column("workbook", 1000),
    *text_columns("workbook_sha256", "history_head"),
    text_column("problem", REASON_CHARACTERS),
    Index(
        "uq_run_active",
        "merchant_id",
        "account_id",
        "business_date",
        unique=True,
        sqlite_where=text("status = 'active'"),
        postgresql_where=text("status = 'active'"),
    ),
    Index("ix_run_night", "merchant_id", "account_id", "business_date"),
)

# One row per source that a run read anew instead of from order_file (the ledger).
run_source = Table(
    "run_source",
    metadata,
    id_column("run_id", primary_key=True),
    Column("kind", String(20), primary_key=True),
    *file_columns(),
)

# Files that arrived, the actions they request, and rows that could not be read.

# One row per version of a file of any kind but the ledger, for the account whose night read it.
order_file = Table(
    "order_file",
    metadata,
    Column("file_id", Integer, primary_key=True),
    *account_columns(),
    business_date_column(),
    id_column("run_id"),
    Column("version", Integer, nullable=False),
    *file_columns(),
    *count_columns("rows_new", "rows_repeat"),
    at_column("read_at", nullable=False),
    Column("kind", String(20), nullable=False, server_default="orders"),  # SourceKind but ledger
    UniqueConstraint("merchant_id", "account_id", "name", "version"),
)

# One row per action requested in an order file or instruction file.
order_action = Table(
    "order_action",
    metadata,
    Column("action_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False),
    Column("line", Integer, nullable=False),
    *account_columns(),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("action", 20),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),  # of the whole order
    amount_column("action_amount", nullable=True),
    text_column("action_reason", 50),
    text_column("request_id", ID_CHARACTERS),
    # From the order row with the action; "" in an instruction file.
    text_column("status", 20),
    amount_column("expected_captured_amount", nullable=True),
    amount_column("refund_amount", nullable=True),
    text_column("instruction_id", ID_CHARACTERS),  # its instruction; "" until it is planned
    *payee_columns(),
    text_column("content_digest", 64),
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is planned
)

# One row per rejected row of a source.
reject = Table(
    "reject",
    metadata,
    Column("reject_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),
    id_column("run_id"),
    text_column("kind", 20),
    text_column("source"),
    Column("line", Integer, nullable=False),
    text_column("column", 100),
    *text_columns("reason", "value", length=REASON_CHARACTERS),
    *text_columns("merchant_id", "account_id", "order_no", length=ID_CHARACTERS),
    # Of a ledger entry, if all three can be read; of a settlement line its currency.
    text_column("entry_type", 40),
    text_column("currency", 3),
    Column("amount", BigInteger, nullable=False, server_default="0"),
    text_column("batch_id", ID_CHARACTERS),  # of a settlement line, if it could be read
)

# How a rejected order row was resolved; rows are never changed or deleted.
reject_end = Table(
    "reject_end",
    metadata,
    Column("end_id", Integer, primary_key=True),
    Column("reject_id", Integer, ForeignKey("reject.reject_id"), nullable=False),
    text_column("ended", 20),  # delivered, dismissed
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),  # its delivery
    text_column("decided_by", ID_CHARACTERS),
    text_column("why", REASON_CHARACTERS),
    at_column("ended_at", nullable=False),
    Index("ix_reject_end_reject", "reject_id"),
)

# References to facts files, which hold the rows of files in the archive.

# One row per order file (also if its rows are those of another file) or settlement file with rows.
order_facts = Table(
    "order_facts",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("folder", Text, nullable=False),  # in the archive of the file's account
    id_column("rows_sha256"),
    count_column("size_bytes"),  # of the facts file
    count_column("row_count"),
    text_column("sender", SENDER_CHARACTERS),  # of orders, see StoredFacts
)

# One row per account with rows in such a file.
order_facts_account = Table(
    "order_facts_account",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    *account_columns(primary_key=True),
    count_column("row_count"),
    at_column("ordered_from", nullable=False),
    at_column("ordered_to", nullable=False),
    Index("ix_order_facts_account_ordered", "merchant_id", "account_id", "ordered_to"),
)

# Bank statements, and those of their entries that concern the merchant.

# One row per statement in a version of a file, for all accounts that the bank serves.
bank_statement = Table(
    "bank_statement",
    metadata,
    Column("statement_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False, index=True),
    *text_columns("bank", "source", "sha256"),
    text_column("iban", ID_CHARACTERS),
    text_column("statement_no"),
    Column("currency", String(3), nullable=False),
    *text_columns("from_date", "to_date", length=10),
    text_column("form", 20),
    amount_column("opening", nullable=True),
    amount_column("closing", nullable=True),
    amount_column("booked"),
    count_column("entries"),
    amount_column("others"),  # sum of entries that are not stored
    text_column("content", 64),
    text_column("created", 40),
    count_column("days_given"),
    Column("known_file", Integer, nullable=False),  # newest file then that named batches of ours
    Index("ix_bank_statement_bank", "bank", "sha256"),
)

# One row per entry in scope, and per payment that it combines.
bank_entry = Table(
    "bank_entry",
    metadata,
    Column("entry_id", Integer, primary_key=True),
    Column("statement_id", ForeignKey("bank_statement.statement_id"), nullable=False, index=True),
    Column("entry_no", Text, nullable=False),
    Column("part", Integer, nullable=False),
    *text_columns("booked_on", "value_on", length=10),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),
    *(
        Column(name, Text, nullable=False)
        for name in ("end_to_end_id", "reference", "counterparty", "text")
    ),
    text_column("status", 20),
    amount_column("charges"),
    text_column("instructed_currency", 3),
    Column("instructed_amount", BigInteger, nullable=True),
)

# References to files with the gateway's answers, and the few answers that are queried by key.

PHASE_CHARACTERS = 80

# One row per archive file of keys or answers, stored before the file is used.
answer_part = Table(
    "answer_part",
    metadata,
    Column("part_id", Integer, primary_key=True),
    id_column("run_id"),
    Column("phase", String(PHASE_CHARACTERS), nullable=False),
    *account_columns(),  # whose answers; a run may query other accounts too
    Column("path", Text, nullable=False),  # relative to the archive
    Column("schema_label", String(40), nullable=False),
    text_column("sha256", ID_CHARACTERS),
    *count_columns("size_bytes", "row_count"),
    count_column("asked"),  # keys to query
    count_column("answered"),  # keys with a final answer
    at_column("last_at"),  # time of the newest answer
    # the newest link of the history when the last of its answers was queried
    Column("asked_after", BigInteger, nullable=False, server_default="0"),
    Column("codes", Text, nullable=False, server_default="{}"),
    text_column("chargeback_codes"),  # codes mapped to chargeback then
    Index("ix_answer_part_run", "run_id", "phase"),
    Index("ix_answer_part_account", "merchant_id", "account_id", "last_at"),
)

# One row per order and chargeback code, as an answer first showed it.
charged_back_order = Table(
    "charged_back_order",
    metadata,
    *account_columns(primary_key=True),
    id_column("order_no", primary_key=True),
    Column("payment_status", String(20), primary_key=True, nullable=False),
    id_column("run_id"),
    Column("part_id", Integer, nullable=False),
)

# What a run compared, stored so that its night can be compared again.

# One row per set of rules that a run has used, as canonical JSON.
rules_version = Table(
    "rules_version",
    metadata,
    id_column("digest", primary_key=True),
    Column("document", Text, nullable=False),
    at_column("first_used_at", nullable=False),
)

# Instructions, the batches in which they are sent, and the history of both.

# One row per intended money movement.
instruction = Table(
    "instruction",
    metadata,
    id_column("instruction_id", primary_key=True),
    text_column("natural_key", 400),
    *account_columns(),
    Column("kind", String(20), nullable=False),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),  # to capture, refund or cancel
    amount_column("payment_amount"),  # the payment's own amount, which the gateway requires
    text_column("reason", 50),
    text_column("request_id", ID_CHARACTERS),
    Column("file_id", Integer, nullable=True),
    Column("line", Integer, nullable=False, server_default="0"),
    Column("state", String(24), nullable=False),
    text_column("hold", REASON_CHARACTERS),  # why it waits for people; "" if it does not
    count_column("attempts"),
    text_column("batch_id", ID_CHARACTERS),  # of the last attempt
    text_column("outcome", 20),
    text_column("code", 40),
    text_column("message", REASON_CHARACTERS),
    text_column("refund_reference_id", ID_CHARACTERS),
    text_column("baseline_status", 20),  # payment_status before the first attempt
    text_column("approved_by"),
    id_column("run_id"),  # the run that planned it
    at_column("planned_at", nullable=False),
    *at_columns("approved_at", "sent_at", "outcome_at", "in_doubt_since"),
    *payee_columns(),
    text_column("again_for", ID_CHARACTERS),  # id of the first of two captures, or ""
    Column("repeats", Text, nullable=False, server_default=""),  # ids of similar ones, with spaces
    text_column("gateway_request_id", ID_CHARACTERS),  # of a payout; never changed
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is final
    UniqueConstraint("natural_key"),
    Index("ix_instruction_state", "merchant_id", "account_id", "state"),
    Index("ix_instruction_payment", "merchant_id", "account_id", "transaction_id"),
)

# One row per request that moves money, stored with the hash of its body before it is sent.
batch = Table(
    "batch",
    metadata,
    id_column("batch_id", primary_key=True),
    id_column("run_id"),
    *account_columns(),
    Column("kind", String(20), nullable=False),
    count_column("rows"),
    Column("state", String(12), nullable=False),  # claimed, replied, closed
    text_column("body_sha256"),
    Column("body", LargeBinary, nullable=False),
    at_column("claimed_at", nullable=False),
    *at_columns("replied_at", "closed_at"),
    Column("http_status", Integer, nullable=True),
    Column("reply_headers", Text, nullable=False, server_default="{}"),
    Column("reply", LargeBinary, nullable=True),  # with card numbers masked
    text_column("reply_sha256"),  # of the bytes as received
    text_column("return_status", 20),
    text_column("message", REASON_CHARACTERS),
    Index("ix_batch_open", "merchant_id", "account_id", "state"),
)

# One row per instruction in a batch.
attempt = Table(
    "attempt",
    metadata,
    id_column("batch_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("instruction_id", ForeignKey("instruction.instruction_id"), nullable=False),
    Column("number", Integer, nullable=False),
    text_column("outcome", 20),
    text_column("code", 40),
    text_column("message", REASON_CHARACTERS),
    UniqueConstraint("instruction_id", "number"),
)

# One row per event, chained: hash = SHA-256(previous hash, canonical row). Never changed.
history = Table(
    "history",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    at_column("at", nullable=False),
    text_column("entity", 20),  # instruction, batch, run, …; the kind of entity_id
    text_column("entity_id", ID_CHARACTERS),
    text_column("event", 40),
    Column("data", Text, nullable=False),
    *text_columns("previous_hash", "hash"),
    Index("ix_history_entity", "entity", "entity_id", "sequence"),
)

# The switch that stops all sending.

# One row per change of the switch; the newest applies, and without rows sending is allowed.
sending_switch = Table(
    "sending_switch",
    metadata,
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("stopped", Boolean, nullable=False),
    text_column("turned_by", 100),
    text_column("reason", REASON_CHARACTERS),
    at_column("at", nullable=False),
)

# Cases: evidence after the end of an instruction that contradicts the journal.

APPLIED = "applied"
"""Verdict on a case: the instruction took effect."""

# One row per instruction that evidence contradicted after its end.
contradiction = Table(
    "contradiction",
    metadata,
    id_column("instruction_id", primary_key=True),
    *account_columns(),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("believed", 24),  # the journal's state, which does not change
    text_column("reason", REASON_CHARACTERS),
    at_column("noted_at", nullable=False),
    text_column("verdict", 12),  # applied, not_applied; "" while the case is open
    at_column("closed_at"),
)

# One-time codes.

# One row per one-time code that was used, so that none is used twice.
used_code = Table(
    "used_code",
    metadata,
    id_column("person", primary_key=True),
    Column("time_step", BigInteger, primary_key=True),
    at_column("used_at", nullable=False),
)

# One row per wrong code.
wrong_code = Table(
    "wrong_code",
    metadata,
    Column("wrong_id", Integer, primary_key=True),
    id_column("person"),
    at_column("at", nullable=False),
    text_column("origin", 100),  # the login on this machine that entered it
)

# What people decided, signed by the approvals service.

# One row per decision of one person, never changed. Only the signed document is evidence; the other
# columns serve to find it.
endorsement = Table(
    "endorsement",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    text_column("kind", 20),
    text_column("subject", REASON_CHARACTERS),
    id_column("person"),
    at_column("at", nullable=False),
    at_column("valid_until"),
    Column("document", Text, nullable=False),  # canonical JSON
    text_column("signature", 128),
    text_column("key_id", ID_CHARACTERS),
    Index("ix_endorsement_kind_subject", "kind", "subject"),
)

# Notifications of the gateway, and messages that were refused.

# One row per verified message of an account; repeats are only counted. Messages on one subject may
# differ where the signature does not cover them, since whoever has one can forge another.
notification = Table(
    "notification",
    metadata,
    Column("notification_id", Integer, primary_key=True),
    *account_columns(),
    text_column("kind", 40),
    Column("identity_sha256", String(64), nullable=False),  # of its subject and stage
    Column("sha256", String(64), nullable=False),  # of all its stored fields
    *text_columns("order_no", "transaction_id", length=ID_CHARACTERS),
    text_column("currency", 3),
    amount_column("amount", nullable=True),  # of the refund if it is about one
    text_column("status", 20),
    Column("fields", Text, nullable=False, server_default="{}"),  # JSON, allow-listed names only
    at_column("received_at", nullable=False),
    at_column("repeated_at"),
    Column("times", Integer, nullable=False, server_default="1"),
    UniqueConstraint("merchant_id", "account_id", "identity_sha256", "sha256"),
    Index("ix_notification_transaction", "merchant_id", "account_id", "transaction_id"),
)

# One row per refused message and reason: forged, contradicting or malformed.
notification_case = Table(
    "notification_case",
    metadata,
    Column("case_id", Integer, primary_key=True),
    *account_columns(),
    text_column("problem", 20),
    text_column("reason", REASON_CHARACTERS),
    Column("body_sha256", String(64), nullable=False),
    Column("fields", Text, nullable=False, server_default="{}"),  # JSON, allow-listed names only
    at_column("received_at", nullable=False),
    Column("times", Integer, nullable=False, server_default="1"),
    UniqueConstraint("merchant_id", "account_id", "problem", "body_sha256"),
)

# Results of runs.

# One row per control total of a run.
control_total = Table(
    "control_total",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("id", 8),
    text_column("name"),
    *text_columns("merchant_id", "account_id", length=ID_CHARACTERS),
    text_column("currency", 3),
    text_column("measure", 10),
    Column("left", BigInteger, nullable=False),
    Column("right", BigInteger, nullable=False),
)

# One row per run: the summary of its result as JSON; the rows are in the night's folder.
result_summary = Table(
    "result_summary",
    metadata,
    id_column("run_id", primary_key=True),
    Column("document", Text, nullable=False),
)

# Answers of people to breaks, and the workbooks with which they came.

# One row per answer to a break, changed only when the second person agrees to a write-off.
break_answer = Table(
    "break_answer",
    metadata,
    Column("answer_id", Integer, primary_key=True),
    *account_columns(),
    id_column("break_id"),
    Column("version", Integer, nullable=False),  # 1 for the first answer to this break
    text_column("resolution", 40),
    text_column("owner", 100),
    text_column("comment", COMMENT_CHARACTERS_MAX),
    text_column("resolved_on", 10),
    text_column("given_by", 100),
    at_column("given_at", nullable=False),
    Column("waits", Boolean, nullable=False),  # a write-off without a second person
    text_column("agreed_by", 100),
    at_column("agreed_at"),
    id_column("run_id"),
    text_column("file_sha256", 64),
    Column("sheet_row", Integer, nullable=False),
    text_column("scope", 40),  # its scope, or that it was given with another break
    text_column("currency", 3),
    amount_column("exposure", nullable=True),  # of the break in the answered workbook
    UniqueConstraint("merchant_id", "account_id", "break_id", "version"),
)

# One row per imported workbook with answers.
answer_file = Table(
    "answer_file",
    metadata,
    Column("file_sha256", String(64), primary_key=True),
    text_column("name"),
    id_column("run_id"),
    text_column("given_by", 100),
    at_column("imported_at", nullable=False),
    Column("taken", Integer, nullable=False),
    Column("refused", Integer, nullable=False),
)

# Journals that were exported for import into the ledger.

# One row per exported journal; a proposed one is only in the result of its run.
exported_journal = Table(
    "exported_journal",
    metadata,
    id_column("journal_id", primary_key=True),
    *account_columns(),
    id_column("break_id"),
    text_column("currency", 3),
    Column("version", Integer, nullable=False),
    id_column("run_id"),  # that proposed it
    at_column("exported_at", nullable=False),
    text_column("booked_in", ID_CHARACTERS),  # the run whose ledger showed it; "" until then
)
