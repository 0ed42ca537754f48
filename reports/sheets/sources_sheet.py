"""The sheets Instructions, Fees, Sources and Guide."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from recon.matching.codes import CODES
from recon.model.figures import NightFigures
from recon.model.gateway_holds import ChargedFees
from reports.drawing.blocks import Column, Listing, Part, Row, Sheet, TextLine, check_of, rows_of
from reports.drawing.look import REPLACEMENT, CellLink
from reports.sheets.control_totals import TOTALS_AT, bridge_sentence
from reports.sheets.lists import named_block
from reports.sheets.totals import GROUP_ORDER, Rows
from reports.sheets.words import TABLES, UNVERIFIED_WORDS, VERDICT_WORDS, state_words, worded

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
    """Rules of reading, verdicts, codes."""
    codes = [
        {"name": code.value, "title": each.title, "meaning": each.meaning, "to_do": each.to_do}
        for code, each in CODES.items()
    ]
    facts = {
        "timezone": figures.timezone,
        "rules": figures.rules_digest or "not given",
        "history": figures.history_head or "not given",
        "signing": _OF_PLAIN_FILES if figures.of_plain_files else _OF_A_NIGHT,
    }
    verdicts = [(verdict.value, words) for verdict, words in VERDICT_WORDS.items()]
    return Sheet(
        "Guide",
        [
            pairs((word, words.format(**facts)) for word, words in TABLES["guide"].items()),
            TextLine(),
            pairs(verdicts, title="Verdicts, worst first"),
            TextLine(),
            Listing(CODES_COLUMNS, codes, title="Break codes, first found first named"),
            TextLine(),
            pairs(UNVERIFIED_WORDS.items(), title="Why a set is not verified"),
        ],
        heading="Guide",
        about="How to read this workbook, and what each code asks.",
        widths=[column.width for column in CODES_COLUMNS],
    )


def pairs(words: Iterable[tuple[Any, str]], *, title: str = "") -> Listing:
    """Words and what they mean."""
    rows = [{"word": str(word), "meaning": meaning} for word, meaning in words]
    return Listing(RULES, rows, title=title)


TITLE = "Fees"
MONTHS_TITLE = "What months came to"
DIFFERING_SHOWN_MAX = 50_000
"""Payments that are listed; the claim file has all that is claimed."""
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
SUMS = (
    Column("Currency", 24, "currency", tone="strong"),
    Column("By contract", 12, "inside", "money"),
    Column("Outside", 24, "outside", "money"),
    Column("All fees", 24, "charged", "money"),
    Column("Adds up", 34, "check", "check"),
)


def fees_sheet(fees: ChargedFees) -> Sheet:
    """The contract, what it leaves out, the sums, every payment that differs."""
    lines = [
        {**row, "difference": row["charged"] - row["expected"]} for row in rows_of(fees.by_line)
    ]
    differing = fees.differing.head(DIFFERING_SHOWN_MAX)
    title = f"Payments with another fee ({len(fees.differing)})"
    if len(fees.differing) > DIFFERING_SHOWN_MAX:
        title += f": the first {DIFFERING_SHOWN_MAX:,}; the claim file has all that is claimed."
    blocks: list[Part] = [
        Listing(BY_LINE, lines, title="Contract"),
        TextLine(),
        Listing(OUTSIDE, rows_of(fees.outside), title="Outside the contract"),
        TextLine(),
        Listing(SUMS, _sums(fees), title="All fees of the settlement", nothing=""),
        TextLine(),
    ]
    if len(fees.months):
        blocks += [Listing(MONTHS, rows_of(fees.months), title=MONTHS_TITLE), TextLine()]
    blocks.append(Listing(DIFFERING, rows_of(differing), title=title))
    return Sheet(
        TITLE,
        blocks,
        heading=TITLE,
        about="What each line of the fee contract expects of the settlement, and what the "
        "gateway charged. What no line holds for stands below it by name.",
        widths=[column.width for column in BY_LINE],
    )


def _sums(fees: ChargedFees) -> list[dict[str, Any]]:
    """By contract + outside = all fees of the settlement, each from a sum of its own."""
    sums = []
    for currency, charged in fees.totals:
        inside, outside = (_sum(frame, currency) for frame in (fees.by_line, fees.outside))
        sums.append(
            {"currency": currency, "inside": inside, "outside": outside, "charged": charged}
            | {"check": check_of(holds=inside + outside == charged)}
        )
    return sums


def _sum(frame: Any, currency: str) -> int:
    return int(frame.loc[frame["currency"] == currency, "charged"].sum())


COLUMNS = (
    Column("Instruction", 36, "instruction_id"),
    Column("Kind", 18, "kind"),
    Column("Result", 14, "group", tone=lambda row: "bad" if row["group"] == "in doubt" else ""),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Ccy", 9, "currency"),
    Column("Amount", 16, "amount", "money"),
    Column("State", 20, worded("state", state_words)),
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
    Column("Result", 14, "group", tone=COLUMNS[2].tone),
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
    """Totals per kind and currency, every batch, every instruction (doubt first)."""
    blocks: list[Part] = [TextLine(figures.stopped, "bad", 11)] if figures.stopped else []
    blocks += [
        Listing(
            TOTALS,
            _totals(rows.instructions),
            title="Totals per kind and currency",
            nothing="No instruction was given.",
        ),
        TextLine(),
        Listing(
            BATCHES, rows.batches, title="Batches as they were sent", nothing="Nothing was sent."
        ),
        TextLine(),
        Listing(
            COLUMNS,
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
        widths=[column.width for column in COLUMNS],
        paper_columns=11,
    )


def kinds_of(rows: Iterable[Row]) -> list[str]:
    """The kinds that occur, captures and refunds first."""
    first = ("capture", "refund", "cancel")
    kinds = {str(row["kind"]) for row in rows}
    return [*(kind for kind in first if kind in kinds), *sorted(kinds - set(first))]


def _totals(rows: Sequence[Row]) -> list[dict[str, Any]]:
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


WIDTHS = (15, 66, 12, 20, 12, 12, 12, 12, 10, 70)
REJECTS_MAX = 10_000
"""More rejected rows than this say one thing: the file is not what it should be."""
FILES = (
    Column("Kind", 15, "kind"),
    Column("Name", 66, "name"),
    Column("Bytes", 12, "size_bytes", "count"),
    Column("Rows read", 20, "rows_read", "count"),
    Column("Accepted", 12, "rows_accepted", "count"),
    Column("Rejected", 12, "rows_rejected", "count"),
    Column("Skipped", 12, "rows_skipped", "count"),
    Column("Difference", 12, "left", "count"),
    Column("Check", 10, "check", "check"),
    Column("SHA-256", 70, "sha256"),
)
REJECTS = (
    Column("Kind", 15, "kind"),
    Column("File", 66, "source"),
    Column("Line", 12, "line", "count"),
    Column("Column", 20, "column"),
    Column("Order no", 24, "order_no", span=2),
    Column("Value", 34, "value", span=3),
    Column("Reason", 70, "reason", wrap=True),
)
STANDING = (
    Column("Row", 15, "reject_id", "count"),
    *REJECTS[1:4],
    Column("Order no", 58, "order_no", span=5),
    REJECTS[-1],
)
UNMAPPED = (
    Column("Field", 15, "field"),
    Column("Code", 66, "code"),
    Column("Times", 12, "count", "count"),
    Column("An order", 20, "sample"),
)
SCOPE = (
    Column("Currency", 15, "currency"),
    Column("What", 66, "statement"),
    Column("Count", 12, "count", "count"),
    Column("Amount", 20, "amount", "money"),
)
DISMISS = "Have these orders delivered, or decide: `recon file --row ROW --dismiss WHY`."


def sources_sheet(figures: NightFigures) -> Sheet:
    """Files, rejected rows, codes without a rule, replaced characters."""
    return Sheet(
        "Sources",
        [*_blocks(figures)],
        heading="Sources",
        about="What was read. Rows read must be accepted, rejected or skipped by a rule that "
        "has a name (identical repeats).",
        widths=WIDTHS,
    )


def _blocks(figures: NightFigures) -> Iterator[Part]:
    yield _files(figures)
    for file in figures.files:
        if file.skipped_by:
            yield TextLine(f"Skipped by the layout of {file.name}: {file.skipped_by}.")
    for kind in figures.bridge if figures.files else ():
        yield TextLine(CellLink(bridge_sentence(figures, kind=kind), TOTALS_AT))
    yield TextLine()
    if named := figures.files_named():
        yield named_block(named)
        yield TextLine()
    yield from _rejects(figures)
    if figures.unmapped_codes:
        sampled = ("sample order_no", "order_no", "sample")
        codes = [
            {"field": "", "code": "", "count": 0, **each}
            | {"sample": str(next((each[name] for name in sampled if name in each), ""))}
            for each in figures.unmapped_codes
        ]
        yield Listing(UNMAPPED, codes, title="Gateway codes that no rule explains")
        yield TextLine()
    if figures.scope_of_assurance:
        scope = [
            {"currency": str(line.get("currency", "") or ""), "statement": line.get("statement")}
            | {name: whole(line.get(name)) for name in ("count", "amount")}
            for line in figures.scope_of_assurance
        ]
        yield Listing(SCOPE, scope, title="Scope of assurance")
        yield TextLine()
    yield TextLine(_replaced, "note")


def _replaced(count: int) -> str:
    return f"{count} unprintable characters of foreign text were shown as {REPLACEMENT}."


def _files(figures: NightFigures) -> Listing:
    names = ("rows_read", "rows_accepted", "rows_rejected", "rows_skipped")
    rows = []
    for file in figures.files:
        left = file.rows_read - file.rows_accepted - file.rows_rejected - file.rows_skipped
        rows.append(asdict(file) | {"left": left, "check": check_of(holds=not left)})
    sums = {name: sum(row[name] for row in rows) for name in names}
    total: dict[str, Any] = {**dict.fromkeys(("name", "size_bytes", "left", "check", "sha256"))}
    return Listing(
        FILES,
        rows,
        title="Files and answers",
        total={**total, "kind": "All", **sums} if rows else None,
        nothing="No file was read.",
    )


def _rejects(figures: NightFigures) -> Iterator[Part]:
    """Of tonight, then of earlier nights whose rows still stand for their orders."""
    count = len(figures.rejects)
    rows = [asdict(reject) for reject in figures.rejects[:REJECTS_MAX]]
    yield Listing(REJECTS, rows, title=f"Rejected rows ({count})")
    if count > REJECTS_MAX:
        yield TextLine(f"{count - REJECTS_MAX} more are in the database.", "note")
    yield TextLine()
    tonight = {(reject.source, reject.line) for reject in figures.rejects}
    left = [each for each in figures.quarantined if (each.source, each.line) not in tonight]
    if left:
        title = f"Rejected on earlier nights, and not delivered again since ({len(left)})"
        yield Listing(STANDING, [asdict(each) for each in left[:REJECTS_MAX]], title=title)
        yield TextLine(DISMISS, "note")
        yield TextLine()


def whole(value: object) -> int | None:
    """A count as it stands in a mapping of figures; None when it is not given."""
    return None if value in {None, ""} else int(str(value))
