"""The tables: one row's grain stands beside each. Money is BIGINT minor units + currency.

Instants are UTC. Text columns hold "" for "not given". Everything a night did can be rebuilt from
here; `history` is append-only and hash-chained (see `history`).
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
    people_columns,
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
    text_column("part", 10),  # model.Part; "" is a whole night
    # what stands in place of the night before; "" where it is there (steps.predecessor)
    text_column("predecessor", REASON_CHARACTERS),
    text_column("step", 20),  # last step that was finished
    # host, process id and its start time, for the sentence that names the holder
    text_column("owner"),
    text_column("owner_process", 120),  # the same for programs: night_lock.Process
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

# One row per source other than order files that a run read (the ledger).
run_source = Table(
    "run_source",
    metadata,
    id_column("run_id", primary_key=True),
    Column("kind", String(20), primary_key=True),
    *file_columns(),
)

# Order files, the actions they ask for, and what could not be read.

# One row per version of an order file of a merchant's inbox.
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
    Column("kind", String(20), nullable=False, server_default="orders"),  # orders, instructions
    UniqueConstraint("merchant_id", "account_id", "name", "version"),
)

# One row per action that an order file row carries.
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
    amount_column("amount"),  # of the order
    amount_column("action_amount", nullable=True),
    text_column("action_reason", 50),
    text_column("request_id", ID_CHARACTERS),
    # Of the order row that carries it; "" where it stands in an instruction file.
    text_column("status", 20),
    amount_column("expected_captured_amount", nullable=True),
    amount_column("refund_amount", nullable=True),
    text_column("instruction_id", ID_CHARACTERS),  # what it became; "" until it is planned
    *payee_columns(),
    text_column("content_digest", 64),
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is planned
)

# One row per row of a source that could not be read.
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
    # Of an entry of the books of which all three can be read; of a settlement line its currency.
    text_column("entry_type", 40),
    text_column("currency", 3),
    Column("amount", BigInteger, nullable=False, server_default="0"),
    text_column("batch_id", ID_CHARACTERS),  # of a settlement line, where it could be read
)

# How a rejected order row stopped standing for its order; never changed, never removed.
reject_end = Table(
    "reject_end",
    metadata,
    Column("end_id", Integer, primary_key=True),
    Column("reject_id", Integer, ForeignKey("reject.reject_id"), nullable=False),
    text_column("ended", 20),  # delivered, dismissed
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),  # that brought it
    text_column("said_by", ID_CHARACTERS),
    text_column("why", REASON_CHARACTERS),
    at_column("ended_at", nullable=False),
    Index("ix_reject_end_reject", "reject_id"),
)

# Which files of facts hold the rows of an order file; the rows themselves lie in the archive.

# One row per order file that brought rows, or arrived with those of another, and settlement file.
order_facts = Table(
    "order_facts",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("folder", Text, nullable=False),  # below the archive of the file's account
    id_column("rows_sha256"),
    count_column("size_bytes"),  # of all of them
    count_column("row_count"),
    text_column("sender", SENDER_CHARACTERS),  # of orders, see StoredFacts
)

# One row per account that such a file has rows of.
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

# Statements of banks, and of their entries only those that are the merchant's business.

# One row per statement of a version of a file; whoever's night read it, it is the bank's.
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
    amount_column("others"),  # of entries that are not kept
    text_column("content", 64),
    text_column("created", 40),
    count_column("days_given"),
    Column("known_file", Integer, nullable=False),  # the last file that said which batches are ours
    Index("ix_bank_statement_bank", "bank", "sha256"),
)

# One row per entry in scope, and per payment that it stands for.
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

# Which files hold what the gateway answered, and the few answers that are asked for by key.

PHASE_CHARACTERS = 80

# One row per file of keys or answers in the archive, made before anything is built on it.
answer_part = Table(
    "answer_part",
    metadata,
    Column("part_id", Integer, primary_key=True),
    id_column("run_id"),
    Column("phase", String(PHASE_CHARACTERS), nullable=False),
    *account_columns(),  # whose answers; another account's than the run's where it was asked, too
    Column("path", Text, nullable=False),  # below the archive
    Column("schema_label", String(40), nullable=False),
    text_column("sha256", ID_CHARACTERS),
    *count_columns("size_bytes", "row_count"),
    count_column("asked"),  # keys that are to be asked for
    count_column("answered"),  # keys with a final answer
    at_column("last_at"),  # of the newest answer
    # the newest link of the history when the last of them was asked
    Column("asked_after", BigInteger, nullable=False, server_default="0"),
    Column("codes", Text, nullable=False, server_default="{}"),
    text_column("chargeback_codes"),  # those that the rules took for chargebacks
    Index("ix_answer_part_run", "run_id", "phase"),
    Index("ix_answer_part_account", "merchant_id", "account_id", "last_at"),
)

# One row per order and code of a chargeback, as an answer first showed it.
charged_back_order = Table(
    "charged_back_order",
    metadata,
    *account_columns(primary_key=True),
    id_column("order_no", primary_key=True),
    Column("payment_status", String(20), primary_key=True, nullable=False),
    id_column("run_id"),
    Column("part_id", Integer, nullable=False),
)

# What a run compared, kept so that its night can be compared again.

# One row per set of rules that a run ever used, as canonical JSON.
rules_version = Table(
    "rules_version",
    metadata,
    id_column("digest", primary_key=True),
    Column("document", Text, nullable=False),
    at_column("first_used_at", nullable=False),
)

# Instructions, the batches that carry them, and the chained history of both.

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
    amount_column("amount"),  # what moves: captured, refunded, cancelled
    amount_column("payment_amount"),  # the payment's own amount, as the gateway wants it beside
    text_column("reason", 50),
    text_column("request_id", ID_CHARACTERS),
    Column("file_id", Integer, nullable=True),
    Column("line", Integer, nullable=False, server_default="0"),
    Column("state", String(24), nullable=False),
    text_column("hold", REASON_CHARACTERS),  # why it waits for a person; "" when nothing holds it
    count_column("attempts"),
    text_column("batch_id", ID_CHARACTERS),  # of the last attempt
    text_column("outcome", 20),
    text_column("code", 40),
    text_column("message", REASON_CHARACTERS),
    text_column("refund_reference_id", ID_CHARACTERS),
    text_column("baseline_status", 20),  # payment_status before the first attempt
    text_column("approved_by"),
    id_column("run_id"),  # that planned it
    at_column("planned_at", nullable=False),
    *at_columns("approved_at", "sent_at", "outcome_at", "in_doubt_since"),
    *payee_columns(),
    text_column("again_for", ID_CHARACTERS),  # the first of two captures; "" for all others
    Column("repeats", Text, nullable=False, server_default=""),  # ids of its like, with spaces
    text_column("gateway_request_id", ID_CHARACTERS),  # of a payout; kept for ever
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is final
    UniqueConstraint("natural_key"),
    Index("ix_instruction_state", "merchant_id", "account_id", "state"),
    Index("ix_instruction_payment", "merchant_id", "account_id", "transaction_id"),
)

# One row per request that moves money. Written, with its body's hash, before the first byte.
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
    Column("reply", LargeBinary, nullable=True),  # card numbers masked
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
    text_column("entity", 20),  # instruction, batch, run; each has its ids
    text_column("entity_id", ID_CHARACTERS),
    text_column("event", 40),
    Column("data", Text, nullable=False),
    *text_columns("previous_hash", "hash"),
    Index("ix_history_entity", "entity", "entity_id", "sequence"),
)

# Whether money may be sent at all.

# One row per turn of the switch that stops all sending; the newest holds, none means allowed.
sending_switch = Table(
    "sending_switch",
    metadata,
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("stopped", Boolean, nullable=False),
    text_column("turned_by", 100),
    text_column("reason", REASON_CHARACTERS),
    at_column("at", nullable=False),
)

# Cases: what the gateway showed after the end of an instruction, against the journal.

APPLIED = "applied"
"""What two people may say of a case: that it took effect."""

# One row per instruction that the gateway contradicted after its end.
contradiction = Table(
    "contradiction",
    metadata,
    id_column("instruction_id", primary_key=True),
    *account_columns(),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("believed", 24),  # the state that the journal has, and keeps
    text_column("told", REASON_CHARACTERS),
    at_column("noted_at", nullable=False),
    text_column("verdict", 12),  # applied, not_applied; "" while the case is open
    at_column("closed_at"),
)

# What people decided: verdicts on doubts, and used codes.

# One row per word of a person about an instruction that evidence cannot decide.
verdict = Table(
    "verdict",
    metadata,
    Column("verdict_id", Integer, primary_key=True),
    id_column("instruction_id"),
    text_column("verdict", 12),  # applied, not_applied
    text_column("evidence", 1000),
    text_column("given_by", 100),
    Column("authenticated", Boolean, nullable=False),
    at_column("given_at", nullable=False),
    text_column("state", 12),  # open, agreed, replaced
)

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
    text_column("origin", 100),  # whose login on this machine gave it
)

# What people agreed to, as the desk signed it.

# One row per word of one person. Only added to; what counts is the document under its signature,
# the other columns are there to find it by.
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

# What two people agree to: lists of instructions, and overrides of a stop.

# One row per list or override that a first person said yes to.
agreement = Table(
    "agreement",
    metadata,
    Column("agreement_id", Integer, primary_key=True),
    # approve, allow sending, accept restore, set file aside, release night, close or reopen month
    text_column("what", 40),
    # which list (its digest), stop, database, file, run; of a month what is signed
    text_column("subject", ID_CHARACTERS),
    text_column("reason", REASON_CHARACTERS),
    Column("instruction_ids", Text, nullable=False, server_default="[]"),  # of a list, JSON
    text_column("state", 12),  # first, complete, void
    *people_columns(),
    at_column("valid_until", nullable=False),
    text_column("why", REASON_CHARACTERS),  # why it is void
)

# What the gateway told by itself, and what claimed to come from it and was refused.

# One row per verified message of an account; its repeats only count up. Of what the signature does
# not cover several may say different things, since whoever holds one message can write another.
notification = Table(
    "notification",
    metadata,
    Column("notification_id", Integer, primary_key=True),
    *account_columns(),
    text_column("kind", 40),
    Column("identity_sha256", String(64), nullable=False),  # what it is about, and which stage
    Column("sha256", String(64), nullable=False),  # of all its kept fields, canonical
    *text_columns("order_no", "transaction_id", length=ID_CHARACTERS),
    text_column("currency", 3),
    amount_column("amount", nullable=True),  # of the refund where it tells of one
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

# What a run's reconciliation came to.

# One row per equation of a run's proof.
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

# One row per run: its result in a few words, as JSON; the rows lie in the folder of the night.
result_summary = Table(
    "result_summary",
    metadata,
    id_column("run_id", primary_key=True),
    Column("document", Text, nullable=False),
)

# What people answered to breaks, and the workbooks that brought the answers.

# One row per answer to a break, never changed but for the second person of a write-off.
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
    Column("waits", Boolean, nullable=False),  # a write-off without its second person
    text_column("agreed_by", 100),
    at_column("agreed_at"),
    id_column("run_id"),
    text_column("file_sha256", 64),
    Column("sheet_row", Integer, nullable=False),
    text_column("scope", 40),  # how far it was to reach, or that it came with another break's
    text_column("currency", 3),
    amount_column("exposure", nullable=True),  # of the break, as the answered workbook showed it
    UniqueConstraint("merchant_id", "account_id", "break_id", "version"),
)

# One row per returned workbook that was taken in.
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

# Who signed which workbook.

# One row per run and role. A later run of the night, or of an earlier one, makes it void.
sign_off = Table(
    "sign_off",
    metadata,
    id_column("run_id", primary_key=True),
    Column("role", String(12), primary_key=True),  # reviewer, approver
    text_column("signed_by", 100),
    Column("authenticated", Boolean, nullable=False),
    at_column("signed_at", nullable=False),
    text_column("workbook_sha256", 64),
)

# Journals that were handed out for import into the books.

# One row per journal handed out. Proposed ones stand in the result of their run only.
exported_journal = Table(
    "exported_journal",
    metadata,
    id_column("journal_id", primary_key=True),
    *account_columns(),
    id_column("break_id"),
    text_column("currency", 3),
    Column("version", Integer, nullable=False),
    id_column("run_id"),  # whose proposal it was
    at_column("exported_at", nullable=False),
    text_column("booked_in", ID_CHARACTERS),  # the run whose ledger showed it; "" until then
)
