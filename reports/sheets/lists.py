"""Lists that grow with the business: their sums, the rows that are shown, and the file with all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from recon.model.figures import MATCHES, ListFile, NightFigures
from recon.model.words import UnverifiedReason
from reports.drawing.blocks import Column, Listing, Part, Row, Sheet, TextLine
from reports.sheets.totals import NOT_VERIFIED, RISK, Rows
from reports.sheets.words import UNVERIFIED_WORDS, flag_words, rule_words, state_words, worded

KINDS: Mapping[str, str] = {
    "match": "matched",
    "unverified": "not verified",
    "pending": "waiting",
}
"""Section -> the word for it on Sources."""
TITLE = "Lists that are too long for their sheets, in files of the run"
COLUMNS = (
    Column("Kind", 15, "kind"),
    Column("Name", 66, "name"),
    Column("Bytes", 12, "size_bytes", "count"),
    Column("Rows", 20, "rows", "count"),
    Column("SHA-256", 70, "sha256", span=6),
)


def added_up(sets: str, *, named: Iterable[ListFile], where: str = "on Sources") -> str:
    """The sentence of a sheet that has sums in place of `sets`; `where` their files are told."""
    files = " and ".join(file.name for file in named) or "the files of the run"
    return f"{sets}, added up; each row stands in {files} (rows and SHA-256 {where})."


def named_block(files: Mapping[str, ListFile]) -> Listing:
    """Each file in a row of Sources."""
    rows = [{**asdict(file), "kind": KINDS[section]} for section, file in files.items()]
    return Listing(COLUMNS, rows, title=TITLE)


def named_in(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int, str]]:
    """Section, rows and SHA-256 of each file, as they stand in the rows of Sources."""
    sections = {kind: section for section, kind in KINDS.items()}
    for row in rows:
        kind = str(row["Kind"])
        yield sections.get(kind, kind), int(row["Rows"]), str(row["SHA-256"])


SETS, MATCHED_ROWS = "Sets", "Matched rows"
RULE, RESULT, CURRENCY = "How it was matched", "Result", "Ccy"
EFFECTS = ("Gateway − orders", "Gateway − ledger")  # noqa: RUF001 - a minus
PAPER_COLUMNS = 12


def amounts(*, covered: bool) -> tuple[Column, ...]:
    """Both sides and the books, and the two differences."""
    return (
        Column("Orders", 15, "order_amount", "money"),
        Column("Gateway", 15, "gateway_amount", "money"),
        Column("Ledger", 15, "ledger_amount", "money", is_covered=covered),
        Column(EFFECTS[0], 16, "effect_orders", "money"),
        Column(EFFECTS[1], 16, "effect_ledger", "money", is_covered=covered),
    )


def _why(row: Row) -> str:
    if row["result"] == NOT_VERIFIED:
        unread = row.get("told") if row["reason"] == UnverifiedReason.ROW_QUARANTINED else ""
        return str(unread or UNVERIFIED_WORDS.get(row["reason"], str(row["reason"])))
    return str(row["told"] or _comes(row)) if row["order_no"] else ""


def _why_all(row: Row) -> str:
    if row["result"] == NOT_VERIFIED:
        return UNVERIFIED_WORDS.get(row["reason"], str(row["reason"]))
    return _comes(row)


def _comes(row: Row) -> str:
    return f"The {row['expected_side'] or 'other'} side may still come."


def open_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Everything that is neither matched nor a break: its sums by reason, then its rows."""
    money = amounts(covered=figures.ledger_covered)
    sums = (
        Column(RESULT, 14, "result"),
        Column("Reason code", 24, "reason"),
        Column("Account", 17, "account_id"),
        Column(SETS, 17, "rows", "count"),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("Money at risk", 17, RISK, "money"),
        Column("Why", 48, _why_all, wrap=True),
    )
    single = (
        Column(RESULT, 14, "result"),
        Column("Order no", 24, "order_no"),
        Column("Order says", 17, worded("state_orders", state_words)),
        Column("Gateway says", 17, worded("state_gateway", state_words)),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("Late from", 17, "due_at", "instant"),
        Column("Why", 48, _why, wrap=True),
        Column("Payment", 24, "transaction_id"),
        Column("Ledger entry", 20, "entry_id"),
        Column("Reason code", 26, "reason"),
        Column("Flags", 24, worded("flags", flag_words)),
        Column("Account", 14, "account_id"),
    )
    about = (
        "Waiting: one side may still come and is not late yet. Not verified: no usable answer or "
        f"row; it is judged when one comes. Times in {figures.timezone}."
    )
    count, shown = rows.open.count(), len(rows.open.shown)
    if shown < count:
        named = [each for name, each in figures.files_named().items() if name != MATCHES]
        about = added_up(f"{count:,} sets that wait or could not be verified", named=named)
    title = f"The first {shown:,} by money at risk" if shown < count else "Each of them"
    blocks: list[Part] = [
        Listing(sums, rows.open.groups, title="By reason"),
        TextLine(),
        Listing(single, rows.open.shown, title=title, is_list=True),
    ]
    return _sheet("Pending", blocks, about=about)


def matched_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """What every match comes to, by states, rule and flags, then the first of them."""
    money = amounts(covered=figures.ledger_covered)
    states = (
        Column("Order says", 22, worded("state_orders", state_words)),
        Column("Gateway says", 22, worded("state_gateway", state_words)),
    )
    sums = (
        *states,
        Column(RULE, 27, worded("rule", rule_words)),
        Column("Account", 17, "account_id"),
        Column(MATCHED_ROWS, 17, "rows", "count"),
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("What explains it", 28, worded("flags", flag_words)),
    )
    single = (
        Column("Order no", 22, "order_no"),
        Column("Payment", 22, "transaction_id"),
        Column("Ledger entry", 27, "entry_id"),
        *states,
        Column(CURRENCY, 6, "currency"),
        *money,
        Column("What explains it", 28, worded("flags", flag_words)),
        Column(RULE, 20, worded("rule", rule_words)),
        Column("Account", 14, "account_id"),
        Column("Match key", 20, "match_id"),
    )
    count, shown = rows.matched.count(), len(rows.matched.shown)
    about = f"{count:,} sets whose sides agree, or whose difference a flag explains"
    if shown < count:
        named = [each for name, each in figures.files_named().items() if name == MATCHES]
        about = added_up(about, named=named)
    first = f"The first {shown:,}, orders first, in the order of the file"
    blocks: list[Part] = [
        Listing(sums, rows.matched.groups, title="All of them, added up"),
        TextLine(),
        Listing(single, rows.matched.shown, title=first if shown < count else "Each", is_list=True),
    ]
    return _sheet("Matched", blocks, about=about)


def _sheet(title: str, blocks: Sequence[Part], *, about: str) -> Sheet:
    return Sheet(
        title,
        blocks,
        heading=title,
        about=about,
        paper_columns=PAPER_COLUMNS,
    )
