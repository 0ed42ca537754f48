"""The list sheets: Pending, Matched, Instructions, Journals, Fees and Guide.

A list that grows with the business is shown as sums and some of its rows; a file of the run has all
of them. Nothing is booked from here: exported journals stay on Journals until the ledger shows
them, and the movements are the rows that the roll-forward on Assurance adds up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from recon.matching.codes import CODES
from recon.model.figures import MATCHES, NightFigures
from recon.model.gateway_holds import ChargedFees
from recon.model.terms import UnverifiedReason
from reports.drawing.blocks import Block, Column, Listing, Row, Sheet, TextLine, check_of, rows_of
from reports.sheets.assurance import added_up
from reports.sheets.labels import (
    TABLES,
    UNVERIFIED_LABELS,
    VERDICT_LABELS,
    flag_labels,
    rule_label,
    state_label,
    title_of,
    worded,
)
from reports.sheets.totals import GROUP_ORDER, NOT_VERIFIED, RISK, Rows, sum_of

SETS, MATCHED_ROWS = "Sets", "Matched rows"
RULE, RESULT, CURRENCY = "How it was matched", "Result", "Ccy"
EFFECTS = ("Gateway − orders", "Gateway − ledger")  # noqa: RUF001 - a minus
PAPER_COLUMNS = 12


def amounts(*, covered: bool) -> tuple[Column, ...]:
    """Columns of the three sides' amounts, and of the two differences."""
    return (
        Column("Orders", 15, "order_amount", "money"),
        Column("Gateway", 15, "gateway_amount", "money"),
        Column("Ledger", 15, "ledger_amount", "money", is_covered=covered),
        Column(EFFECTS[0], 16, "effect_orders", "money"),
        Column(EFFECTS[1], 16, "effect_ledger", "money", is_covered=covered),
    )


def _why(row: Row) -> str:
    """Why the rows with a reason are open, regardless of the individual row."""
    if row["result"] == NOT_VERIFIED:
        return UNVERIFIED_LABELS.get(row["reason"], str(row["reason"]))
    return f"The {row['expected_side'] or 'other'} side may still come."


def _why_this(row: Row) -> str:
    is_open = row["result"] == NOT_VERIFIED
    if is_open and row["reason"] != UnverifiedReason.ROW_QUARANTINED:
        return _why(row)
    return str(row["reported"] or _why(row)) if is_open or row["order_no"] else ""


def open_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Everything that is neither matched nor a break: sums by reason, then rows."""
    money = amounts(covered=figures.ledger_covered)
    sums = (
        Column(RESULT, 14, "result"),
        Column("Reason code", 24, "reason"),
        Column("Account", 17, "account_id"),
        Column(SETS, 17, "rows", "count"),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("Money at risk", 17, RISK, "money"),
        Column("Why", 48, _why, wrap=True),
    )
    single = (
        Column(RESULT, 14, "result"),
        Column("Order no", 24, "order_no"),
        Column("Order says", 17, worded("state_orders", state_label)),
        Column("Gateway says", 17, worded("state_gateway", state_label)),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("Late from", 17, "due_at", "instant"),
        Column("Why", 48, _why_this, wrap=True),
        Column("Payment", 24, "transaction_id"),
        Column("Ledger entry", 20, "entry_id"),
        Column("Reason code", 26, "reason"),
        Column("Flags", 24, worded("flags", flag_labels)),
        Column("Account", 14, "account_id"),
    )
    about = (
        "Waiting: one side may still come and is not late yet. Not verified: no usable answer or "
        f"row; it is compared when one comes. Times in {figures.timezone}."
    )
    count, shown = rows.open.count(), len(rows.open.shown)
    if shown < count:
        named = [each for name, each in figures.files_named().items() if name != MATCHES]
        about = added_up(f"{count:,} sets that wait or could not be verified", named=named)
    largest = f"The first {shown:,}, most money at risk of each currency"
    title = largest if shown < count else "Each of them"
    blocks: list[Block] = [
        Listing(sums, rows.open.groups, title="By reason"),
        *_unread(figures),
        Listing(single, rows.open.shown, title=title, is_list=True),
    ]
    return _sheet("Pending", blocks, about=about)


def matched_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Sums of all matches by states, rule and flags, then the first rows."""
    money = amounts(covered=figures.ledger_covered)
    states = (
        Column("Order says", 22, worded("state_orders", state_label)),
        Column("Gateway says", 22, worded("state_gateway", state_label)),
    )
    sums = (
        *states,
        Column(RULE, 27, worded("rule", rule_label)),
        Column("Account", 17, "account_id"),
        Column(MATCHED_ROWS, 17, "rows", "count"),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("What explains it", 28, worded("flags", flag_labels)),
    )
    single = (
        Column("Order no", 22, "order_no"),
        Column("Payment", 22, "transaction_id"),
        Column("Ledger entry", 27, "entry_id"),
        *states,
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("What explains it", 28, worded("flags", flag_labels)),
        Column(RULE, 20, worded("rule", rule_label)),
        Column("Account", 14, "account_id"),
        Column("Match key", 20, "match_id"),
    )
    count, shown = rows.matched.count(), len(rows.matched.shown)
    about = f"{count:,} sets whose sides agree, or whose difference a flag explains"
    if shown < count:
        named = [each for name, each in figures.files_named().items() if name == MATCHES]
        about = added_up(about, named=named)
    first = f"The first {shown:,}, orders first, in the order of the file"
    blocks: list[Block] = [
        Listing(sums, rows.matched.groups, title="All of them, added up"),
        Listing(single, rows.matched.shown, title=first if shown < count else "Each", is_list=True),
    ]
    return _sheet("Matched", blocks, about=about)


def _sheet(title: str, blocks: Sequence[Block], *, about: str) -> Sheet:
    return Sheet(
        title,
        blocks,
        heading=title,
        about=about,
        paper_columns=PAPER_COLUMNS,
    )


REJECTS_MAX = 10_000
"""Maximum number of rejected rows shown; with more, the file as a whole is wrong."""
REJECTS = (
    Column("Kind", 14, "kind"),
    Column("File", 41, "source", span=2),
    Column("Line", 17, "line", "count"),
    Column("Column", 21, "column", span=2),
    Column("Order no", 30, "order_no", span=2),
    Column("Value", 32, "value", span=2),
    Column("Reason", 65, "reason", span=2, wrap=True),
)
STATUS = (
    Column("Row", 14, "reject_id", "count"),
    *REJECTS[1:4],
    Column("Order no", 62, "order_no", span=4),
    REJECTS[-1],
)
UNMAPPED = (
    Column("Field", 14, "field"),
    Column("Code", 41, "code", span=2),
    Column("Times", 17, "count", "count"),
    Column("An order", 21, "sample", span=2),
)
DISMISS = "Have these orders delivered, or decide: `recon reject --row ROW --reason WHY`."


def _unread(figures: NightFigures) -> Iterator[Block]:
    """Rows rejected by this run, earlier ones not delivered again, and unmapped codes."""
    count = len(figures.rejects)
    if rows := [asdict(reject) for reject in figures.rejects[:REJECTS_MAX]]:
        yield Listing(REJECTS, rows, title=f"Rejected rows ({count})")
    if count > REJECTS_MAX:
        yield TextLine(f"{count - REJECTS_MAX} more are in the database.", "note")
    tonight = {(reject.source, reject.line) for reject in figures.rejects}
    left = [each for each in figures.quarantined if (each.source, each.line) not in tonight]
    if left:
        title = f"Rejected on earlier nights, and not delivered again since ({len(left)})"
        yield Listing(STATUS, [asdict(each) for each in left[:REJECTS_MAX]], title=title)
        yield TextLine(DISMISS, "note")
    if figures.unmapped_codes:
        sampled = ("sample order_no", "order_no", "sample")
        codes = [
            {"field": "", "code": "", "count": 0, **each}
            | {"sample": str(next((each[name] for name in sampled if name in each), ""))}
            for each in figures.unmapped_codes
        ]
        yield Listing(UNMAPPED, codes, title="Gateway codes that no rule explains")


INSTRUCTIONS = (
    Column("Instruction", 36, "instruction_id"),
    Column("Kind", 18, "kind"),
    Column("Result", 14, "group", tone=lambda row: "bad" if row["group"] == "in doubt" else ""),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Ccy", 9, "currency"),
    Column("Amount", 16, "amount", "money"),
    Column("State", 20, worded("state", state_label)),
    Column("Outcome", 11, "outcome"),
    Column("Code", 10, "code"),
    Column("Message", 40, "message", wrap=True),
    Column("Refund reference", 22, "refund_reference_id"),
    Column("Batch", 36, "batch_id"),
    Column("Attempt", 9, "attempt", "count"),
    Column("Approved by", 18, "approved_by"),
    Column("Sent", 19, "sent_at", "instant"),
    Column("Outcome at", 19, "outcome_at", "instant"),
    Column("In doubt since", 19, "in_doubt_since", "instant"),
    Column("File", 26, "source"),
    Column("Line", 8, "line", "count"),
)
TOTALS = (
    Column("Kind", 36, "kind"),
    Column("Ccy", 18, "currency"),
    Column("Result", 14, "group", tone=INSTRUCTIONS[2].tone),
    Column("Instructions", 24, "count", "count"),
    Column("Amount", 24, "amount", "money"),
)
BATCHES = (
    Column("Batch", 36, "batch_id"),
    Column("Kind", 18, "kind"),
    Column("In doubt", 14, "in_doubt", "count"),
    Column("Sent", 24, "sent_at", "instant"),
    Column("SHA-256 of the request", 24, "body_sha256"),
    Column("Ccy", 9, "currency"),
    Column("Amount", 16, "amount", "money"),
    Column("Rows", 20, "rows", "count"),
    Column("Confirmed", 11, "confirmed", "count"),
    Column("Rejected", 10, "rejected", "count"),
    Column("Gateway's message", 40, "message"),
    Column("Not sent", 22, "not_sent", "count"),
    Column("Return status", 36, "return_status"),
)


def instructions_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Totals per kind and currency, every batch, every instruction (in doubt first)."""
    blocks: list[Block] = [TextLine(figures.stopped, "bad", 11)] if figures.stopped else []
    blocks += [
        Listing(
            TOTALS,
            _totals_of(rows.instructions),
            title="Totals per kind and currency",
            nothing="No instruction was given.",
        ),
        Listing(
            BATCHES, rows.batches, title="Batches as they were sent", nothing="Nothing was sent."
        ),
        Listing(
            INSTRUCTIONS,
            rows.instructions,
            title="Every instruction, what is in doubt first",
            nothing="",
            is_list=True,
        ),
    ]
    return Sheet(
        "Instructions",
        blocks,
        heading="Instructions",
        about="What was to be moved. In doubt means that nobody knows yet whether it took "
        f"effect: it is never sent again. Times in {figures.timezone}.",
        widths=[column.width for column in INSTRUCTIONS],
        paper_columns=11,
    )


def _totals_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Count and amount per kind, currency and result."""
    sums: dict[tuple[str, str, int], tuple[int, int]] = {}
    for row in rows:
        key = (str(row["kind"]), str(row["currency"]), GROUP_ORDER.index(row["group"]))
        count, amount = sums.get(key, (0, 0))
        sums[key] = count + 1, amount + (row["amount"] or 0)
    return [
        {"kind": kind, "currency": currency, "group": GROUP_ORDER[place]}
        | {"count": count, "amount": amount}
        for (kind, currency, place), (count, amount) in sorted(sums.items())
    ]


_HANDED_OUT = ": `recon journals --out` hands each one out once"


JOURNAL_SUMS = (
    Column("Currency", 36, "currency", tone="strong", span=4),
    Column("Debit", 16, "debit", "money"),
    Column("Credit", 16, "credit", "money"),
    Column("Difference", 24, "difference", "money"),
    Column("Check", 24, "check", "check"),
)
JOURNALS = (
    Column("Journal", 36, "journal_id"),
    Column("Date", 14, "date", "date"),
    Column("Account of the ledger", 27, "account"),
    Column("Ccy", 8, "currency"),
    Column("Debit", 16, "debit", "money"),
    Column("Credit", 16, "credit", "money"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
    Column("What for", 42, "text"),
)
OUT = (
    Column("Journal", 36, "journal_id"),
    Column("Handed out (UTC)", 14, "handed_out"),
    Column("Of run", 27, "run_id"),
    Column("Ccy", 8, "currency"),
    Column("Ledger still lacks", 16, "amount", "money"),
    Column("", 16, lambda _: None),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
)
MOVEMENTS = (
    Column("What became of it", 36, worded("movement", lambda of: TABLES["movements"].get(of, of))),
    Column("Ccy before", 14, "currency_before"),
    Column("It was", 27, worded("code_before", title_of)),
    Column("Ccy", 8, "currency"),
    Column("At risk before", 16, "exposure_before", "money", currency="currency_before"),
    Column("At risk now", 16, "exposure", "money"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
    Column("It is", 42, worded("code", title_of)),
    Column("Counts as", 14, "counts_as"),
)


def journals_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Totals per currency, the proposed journal lines, then the movements of breaks."""
    out = [
        {**asdict(each), "handed_out": f"{each.exported_at:%Y-%m-%d}"}
        for each in figures.handed_out
    ]
    count, moved = len(rows.journals), len(rows.movements)
    became = f"What became of each break since the night before ({moved})"
    return Sheet(
        "Journals",
        [
            Listing(
                JOURNAL_SUMS,
                _journal_sums(rows),
                title="Proposed per currency",
                nothing="No journal is proposed.",
            ),
            Listing(JOURNALS, rows.journals, title=f"Lines of the proposals ({count})"),
            Listing(OUT, out, title=f"Handed out, not yet seen in the ledger ({len(out)})"),
            Listing(MOVEMENTS, rows.movements, title=became),
        ],
        heading="Journals",
        about="Proposed journals: what would correct the ledger, two lines for each kind of "
        f"entry. Nothing is booked from here{'' if figures.of_plain_files else _HANDED_OUT}.",
        widths=[column.width for column in MOVEMENTS],
    )


def _journal_sums(rows: Rows) -> list[dict[str, Any]]:
    sums = []
    for currency in sorted({line["currency"] for line in rows.journals}):
        debit, credit = (
            sum_of(rows.journals, name=name, currency=currency) for name in ("debit", "credit")
        )
        sums.append(
            {"currency": currency, "debit": debit, "credit": credit}
            | {"difference": debit - credit, "check": check_of(holds=debit == credit)}
        )
    return sums


MONTHS_TITLE = "What months came to"
DIFFERING_DISPLAYED_MAX = 50_000
"""Maximum number of payments that are listed; the claim file has all that are claimed."""
BY_LINE = (
    Column("Contract", 24, "name"),
    Column("Type", 12, "type"),
    Column("Holds for", 24, "holds_for"),
    Column("Days", 24, "days"),
    Column("Price", 34, "price"),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Base", 16, "base", "money"),
    Column("Expected", 16, "expected", "money"),
    Column("Charged", 16, "charged", "money"),
    Column("Difference", 16, "difference", "money"),
    Column("Too much", 16, "over", "money"),
    Column("Too little", 16, "under", "money"),
)
OUTSIDE = (
    Column("Why", 24, "reason", span=5),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Charged", 16, "charged", "money"),
)
DIFFERING = (
    Column("Contract", 24, "contract_line"),
    Column("Type", 12, "entry_type"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Batch", 34, "batch_id"),
    Column("Ccy", 12, "currency"),
    Column("Settled on", 12, "settled_on", "date"),
    Column("Base", 16, "base", "money"),
    Column("Expected", 16, "expected", "money"),
    Column("Charged", 16, "charged", "money"),
    Column("Difference", 16, "difference", "money"),
    Column("Given back", 16, "given_back", "money"),
    Column("Claimed", 16, "claimed", "money"),
)
MONTHS = (
    Column("Contract", 24, "name"),
    Column("Month", 12, "month"),
    Column("Account", 24, "account", span=2),
    Column("Reaches", 34, "reached"),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Base", 16, "base", "money"),
    Column("Late lines", 16, "late_lines", "count"),
    Column("Late base", 16, "late_base", "money"),
    Column("Priced anew", 16, "otherwise", "count"),
)
FEE_SUMS = (
    Column("Currency", 24, "currency", tone="strong"),
    Column("By contract", 12, "inside", "money"),
    Column("Outside", 24, "outside", "money"),
    Column("All fees", 24, "charged", "money"),
    Column("Adds up", 34, "check", "check"),
)


def fees_sheet(fees: ChargedFees) -> Sheet:
    """The fee contract, fees outside it, the sums, and every payment that differs."""
    lines = [
        {**row, "difference": row["charged"] - row["expected"]} for row in rows_of(fees.by_line)
    ]
    differing = fees.differing.head(DIFFERING_DISPLAYED_MAX)
    title = f"Payments with another fee ({len(fees.differing)})"
    if len(fees.differing) > DIFFERING_DISPLAYED_MAX:
        title += f": the first {DIFFERING_DISPLAYED_MAX:,}; the claim file has all that is claimed."
    blocks: list[Block] = [
        Listing(BY_LINE, lines, title="Contract"),
        Listing(OUTSIDE, rows_of(fees.outside), title="Outside the contract"),
        Listing(FEE_SUMS, _fee_sums(fees), title="All fees of the settlement", nothing=""),
    ]
    if len(fees.months):
        blocks += [Listing(MONTHS, rows_of(fees.months), title=MONTHS_TITLE)]
    blocks.append(Listing(DIFFERING, rows_of(differing), title=title))
    return Sheet(
        "Fees",
        blocks,
        heading="Fees",
        about="What each line of the fee contract expects of the settlement, and what the "
        "gateway charged. What no line applies to is listed below it by name.",
        widths=[column.width for column in BY_LINE],
    )


def _fee_sums(fees: ChargedFees) -> list[dict[str, Any]]:
    """Check that fees inside and outside the contract add up to all fees, summed separately."""
    sums = []
    for currency, charged in fees.totals:
        inside, outside = (
            int(frame.loc[frame["currency"] == currency, "charged"].sum())
            for frame in (fees.by_line, fees.outside)
        )
        sums.append(
            {"currency": currency, "inside": inside, "outside": outside, "charged": charged}
            | {"check": check_of(holds=inside + outside == charged)}
        )
    return sums


_OF_A_NIGHT = "Signing is a command of its own."
_OF_PLAIN_FILES = "They are for yourself: only of nights are answers taken in and signed."
RULES = (
    Column("Word", 36, "word", tone="strong"),
    Column("What it means", 186, "meaning", span=3),
)
CODES_COLUMNS = (
    Column("Code", 36, "name"),
    Column("What is wrong", 30, "title", wrap=True),
    Column("What it means", 78, "meaning", wrap=True),
    Column("What to do", 78, "to_do", wrap=True),
)


def guide_sheet(figures: NightFigures) -> Sheet:
    """How to read the workbook, the verdicts and the codes."""
    codes = [
        {"name": code.value, "title": each.title, "meaning": each.meaning, "to_do": each.to_do}
        for code, each in CODES.items()
    ]
    facts = {
        "timezone": figures.timezone,
        "signing": _OF_PLAIN_FILES if figures.of_plain_files else _OF_A_NIGHT,
    }
    verdicts = [(verdict.value, labels) for verdict, labels in VERDICT_LABELS.items()]
    return Sheet(
        "Guide",
        [
            pairs((label, labels.format(**facts)) for label, labels in TABLES["guide"].items()),
            pairs(verdicts, title="Verdicts, worst first"),
            Listing(
                CODES_COLUMNS,
                codes,
                title="Break codes: of several findings the first here names the break",
            ),
            pairs(UNVERIFIED_LABELS.items(), title="Why a set is not verified"),
        ],
        heading="Guide",
        about="How to read this workbook, and what each code asks.",
        widths=[column.width for column in CODES_COLUMNS],
    )


def pairs(labels: Iterable[tuple[Any, str]], *, title: str = "") -> Listing:
    """A list of labels and what they mean."""
    rows = [{"word": str(label), "meaning": meaning} for label, meaning in labels]
    return Listing(RULES, rows, title=title)
