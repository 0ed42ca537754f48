"""The sheets of a month: Statement, and Close with Journals and Open breaks."""

from collections.abc import Iterator, Sequence
from typing import Any

from recon.matching.breaks.result import subject_of
from recon.matching.judging.severity import risk_of_break
from recon.model.resolutions import with_answers
from recon.steps.month.close import (
    NOT_PROVEN,
    PROVEN,
    Blocker,
    CloseVerdict,
    OpenItem,
    PreparedClose,
)
from recon.steps.month.stated import StatedMonth
from recon.steps.month.statement import StatementRow, blocks_of
from reports.drawing.blocks import Column, Listing, Part, Row, Sheet, TextLine, check_of, rows_of
from reports.drawing.look import NAVY, CellLink, Tone
from reports.sheets.words import in_words, words_of

TITLE = "Statement"
TROUBLES_MAX = 12
"""Sentences on the page; all of them are in the files beside the workbook."""
_, BANK, _ = BLOCKS = ("The gateway", "On the way to the bank", "The books")
_INDENT = "    "


def _tone(row: Row) -> Tone:
    kind = row["kind"]
    return "total" if kind == "close" else {"open": "strong", "note": "muted"}.get(kind, "")


def statement_sheet(stated: StatedMonth) -> Sheet:
    """The page that is read first."""
    statement = stated.statement
    which = "/".join(statement.account)
    verdict, tone = (PROVEN, "good") if stated.is_proven else (NOT_PROVEN, "bad")
    return Sheet(
        TITLE,
        [
            TextLine(f"Statement of account {which}, {statement.month.name}", "title"),
            *(TextLine(sentence, "muted") for sentence in _about(stated)),
            TextLine(verdict, f"verdict {tone}"),
            *(TextLine(sentence, "note") for sentence in _troubles(stated)),
            *(
                part
                for currency in statement.currencies
                for part in _of_currency(stated, currency=currency)
            ),
        ],
        widths=(62, 10, 22, 12),
        frozen=(1, 0),
        is_upright=True,
        colour=NAVY,
    )


def _about(stated: StatedMonth) -> Iterator[str]:
    month = stated.statement.month
    yield (
        f"Business dates {month.first} to {month.last}, by what the night of {stated.known_by} "
        "knows. Amounts as the merchant has them to get: what comes in is positive."
    )
    if stated.is_first:
        yield "No night ran before: what was open then is what this month's nights still show."
    if not stated.statement.is_settled:
        yield "No settlement file was given: fees, reserves and pay-outs are not covered."
    if stated.statement.transit is None:
        yield "The bank is not covered: no statement of it was given."
    if stated.statement.books is None:
        yield "The books are not covered: no ledger was given."
    if len(stated.rules) > 1:
        yield f"The rules changed {len(stated.rules) - 1} times (see Nights); the newest ones date."


def _troubles(stated: StatedMonth) -> list[str]:
    shown = stated.troubles[:TROUBLES_MAX]
    left = len(stated.troubles) - len(shown)
    return [*shown, *([f"and {left} more: see Nights and Proof"] if left else [])]


def _of_currency(stated: StatedMonth, *, currency: str) -> Iterator[Part]:
    """The blocks of one currency; each closing is the sum of what stands above it."""
    statement = stated.statement
    there = (True, statement.transit is not None, statement.books is not None)
    named = [name for name, is_there in zip(BLOCKS, there, strict=True) if is_there]
    yield TextLine()
    yield TextLine(currency, "heading")
    for about, block in zip(named, blocks_of(statement, currency=currency), strict=True):
        columns = (
            Column(about, 62, "label", tone=_tone),
            Column("Count", 10, "count", "count", tone=_tone),
            Column("Amount", 22, "amount", "money", tone=_tone),
            Column("Check", 12, "check", "check"),
        )
        yield Listing(columns, _rows(block, currency=currency, about=about))
        yield TextLine()


def _rows(block: Sequence[StatementRow], *, currency: str, about: str) -> list[dict[str, Any]]:
    place = [row.kind for row in block].index("close")
    moved = sum(row.amount for row in block[:place] if row.kind != "note")
    listed = sum(row.amount for row in block if row.kind == "listed")
    total = block[place].amount
    # What is on its way to the bank is listed on a sheet of its own.
    holds = moved == total and (about == BANK or listed == total)
    return [
        {
            "kind": row.kind,
            "label": f"{_INDENT * row.depth}{row.label}",
            "count": row.count,
            "amount": row.amount,
            "currency": currency,
            "check": check_of(holds=holds) if number == place else None,
        }
        for number, row in enumerate(block)
    ]


WIDTHS = (58, 20, 18, 6, 44)
"""Together what A4 across holds at its full size: the page is signed on paper, too."""
BLOCKERS_MAX = 1_000
"""Rows on the page; all of them are in blockers.csv."""
ESTIMATE = "ESTIMATE: fees of captures that no line has settled; in no sum and no journal"
CLOSINGS = (
    Column("What it comes to", 58, "label", span=2, wrap=True),
    Column("Amount", 18, "amount", "money"),
    Column("Ccy", 6, "currency"),
    Column("Sheet", 44, "sheet"),
)
SIGNED = (
    Column("Signed by", 58, "by"),
    Column("As", 20, "role", span=3),
    Column("At", 44, lambda row: f"{row['at']:%Y-%m-%d %H:%M:%S} UTC"),
)
BLOCKERS = (
    Column("What blocks it", 58, "what", wrap=True),
    Column("Owner", 44, "owner", span=3),
    Column("Where to go", 44, "where", wrap=True),
)
OPEN = (
    Column("What stays open", 58, "what", wrap=True),
    Column("Count", 20, "count", "count"),
    Column("Amount", 18, "amount", "money"),
    Column("Ccy", 6, "currency"),
    Column("Sheet", 44, "sheet"),
)
JOURNAL_COLUMNS = (
    Column("Kind", 12, "kind"),
    Column("Date", 12, "date", "date"),
    Column("Account", 26, "account"),
    Column("Debit", 18, "debit", "money"),
    Column("Credit", 18, "credit", "money"),
    Column("Ccy", 6, "currency"),
    Column("Order", 22, "order_no"),
    Column("Break", 20, "break_id"),
    Column("Text", 50, "text"),
    Column("Journal", 34, "journal_id"),
)
BREAK_COLUMNS = (
    Column("What is wrong", 32, lambda row: words_of(row["code"]).title),
    Column("Code", 30, "code"),
    Column("Order or batch", 22, subject_of),
    Column("Payment", 24, "transaction_id"),
    Column("Ccy", 6, "currency"),
    Column("Money at risk", 18, risk_of_break, "money"),
    Column("Whole amount", 18, "exposure", "money"),
    Column("Severity", 10, "severity"),
    Column("First seen", 12, "first_seen", "date"),
    Column("Owner", 20, "owner"),
    Column("Comment", 50, "comment"),
    Column("Break", 20, "break_id"),
)
SUMS = (
    Column("Sum", 12, "sum", span=3),
    Column("Debit", 18, "debit", "money"),
    Column("Credit", 18, "credit", "money"),
    Column("Check", 10, "check", "check"),
)


def close_sheet(close: PreparedClose, *, digest: str) -> Sheet:
    """The page that is read first: the verdict, what to do, what is owed, blocks it, and is open.

    `digest`: of all that its two people sign.
    """
    statement = close.stated.statement
    which = "/".join(statement.account)
    dates = f"Business dates {statement.month.first} to {statement.month.last}"
    is_what = "" if close.signatures else " Prepared: nothing is closed by it."
    is_bad = close.verdict is CloseVerdict.NOT_READY
    return Sheet(
        "Close",
        [
            TextLine(f"Close of account {which}, {statement.month.name}", "title"),
            TextLine(
                f"{dates}, by what the night of {close.stated.known_by} knows.{is_what}", "muted"
            ),
            TextLine(close.verdict.value, "verdict bad" if is_bad else "verdict good"),
            *(TextLine(sentence, "note") for sentence in _next_steps(close, digest=digest)),
            TextLine(),
            *_names(close),
            Listing(CLOSINGS, [*_closings(close)]),
            TextLine(),
            Listing(BLOCKERS, [*_blockers(close)]),
            TextLine(),
            Listing(OPEN, [*_open_items(close)]),
            TextLine(),
            *_estimates(close),
        ],
        widths=WIDTHS,
        frozen=(1, 0),
        colour=NAVY,
    )


def journals_sheet(close: PreparedClose) -> Sheet:
    """What the books are to be told, and by month and currency that debits are credits."""
    lines = close.stated.statement.journals
    sentence = "What the books are to be told: permanent, or accrued and taken back next day."
    months = lines["date"].astype("str").str.slice(0, len("2026-11")).rename("month")
    sums = []
    for (currency, month), own in lines.groupby(["currency", months]):
        debit, credit = (int(own[name].sum()) for name in ("debit", "credit"))
        sums.append(
            {"sum": f"Sum {currency} {month}", "currency": currency, "debit": debit}
            | {"credit": credit, "check": check_of(holds=debit == credit)}
        )
    return Sheet(
        "Journals",
        [
            Listing(JOURNAL_COLUMNS, rows_of(lines), is_list=True),
            TextLine(),
            Listing(SUMS, sums, nothing=""),
        ],
        heading="Journals",
        about=sentence,
    )


def open_breaks_sheet(close: PreparedClose) -> Sheet:
    """What the last night by the close shows as open, with what people answered since."""
    rows = [*with_answers(rows_of(close.stated.statement.breaks), close.answers)]
    sentence = "Open at the close, as its last night shows it; owner and comment as answered since."
    blocks = [Listing(BREAK_COLUMNS, rows, is_list=True)]
    return Sheet("Open breaks", blocks, heading="Open breaks", about=sentence)


def _next_steps(close: PreparedClose, *, digest: str) -> Iterator[str]:
    """What the reader does next, and what is signed."""
    statement = close.stated.statement
    merchant_id, account_id = statement.account
    account = f"{statement.month.name} --merchant {merchant_id} --account {account_id}"
    if close.blockers and not close.signatures:
        yield f"Nothing can be signed yet: clear what blocks it, then recon close {account}"
    elif not close.signatures:
        yield f"To sign: recon close {account} --sign reviewer --as NAME --digest {digest[:16]}"
        yield "then an approver, who is another person, by the same with --sign approver"
    yield f"Digest {digest}"


def _names(close: PreparedClose) -> Iterator[Part]:
    """Whose names stand under it, and that it was reopened."""
    if (reopened := close.state.reopened) is not None:
        yield TextLine(
            f"Reopened on {reopened.at:%Y-%m-%d %H:%M} UTC by {reopened.by}: {reopened.reason}. "
            f"Close {len(close.state.closes)} and its folder stay.",
            "note",
            len(WIDTHS),
        )
        yield TextLine()
    if close.signatures:
        names = ("by", "role", "at")
        rows = [{name: getattr(each, name) for name in names} for each in close.signatures]
        yield Listing(SIGNED, rows)
        yield TextLine()


def _closings(close: PreparedClose) -> Iterator[dict[str, Any]]:
    """What the statement comes to, by what and currency."""
    statement = close.stated.statement
    closings: dict[str, list[tuple[int, str]]] = {}
    for currency in statement.currencies:
        for block in blocks_of(statement, currency=currency):
            last = next(each for each in block if each.kind == "close")
            closings.setdefault(last.label, []).append((last.amount, currency))
    for label, amounts in closings.items():
        for number, (amount, currency) in enumerate(amounts):
            yield {
                "label": "" if number else label,
                "amount": amount,
                "currency": currency,
                "sheet": CellLink("Statement", "'Statement'!A1"),
            }


def _blockers(close: PreparedClose) -> Iterator[dict[str, Any]]:
    """What stands against closing, with its owner and where to go."""
    for each in close.blockers[:BLOCKERS_MAX] or (Blocker("Nothing.", "", ""),):
        what = in_words(each.what, code=each.code)
        yield {"what": what, "owner": each.owner, "where": each.where}


def _open_items(close: PreparedClose) -> Iterator[dict[str, Any]]:
    for each in close.open_items or (OpenItem("Nothing.", 0, "", 0, ""),):
        yield {
            "what": in_words(each.what, code=each.code),
            "count": each.count or None,
            "amount": each.amount if each.currency else None,
            "currency": each.currency,
            "sheet": CellLink(each.sheet, f"'{each.sheet}'!A4") if each.sheet else "",
        }


def _estimates(close: PreparedClose) -> Iterator[Part]:
    """Fees that nobody charged yet, marked as what they are."""
    estimates = sorted(close.stated.statement.estimates.items())
    if estimates:
        rows = [{"label": ESTIMATE, "amount": amount, "currency": c} for c, amount in estimates]
        columns = (Column("Beside", 58, "label", span=2, wrap=True, tone="note"), *CLOSINGS[1:3])
        yield Listing(columns, rows)
