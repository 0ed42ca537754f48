"""The workbook of a month's close (`close_workbook`): the close, its statement, then the lists.

The same month gives the same bytes. A list with too many rows is reduced to its sums and its first
rows; all rows are in CSV files of the same close, whose row counts and SHA-256 the sheet states.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, time
from hashlib import sha256
from typing import Any

import pandas as pd

from recon.matching.breaks.result import subject_of
from recon.matching.classifying.severity import risk_of_break
from recon.model.figures import ListFile
from recon.model.resolutions import with_answers
from recon.month.close import (
    NOT_PROVEN,
    PROVEN,
    Blocker,
    CloseVerdict,
    OpenItem,
    PreparedClose,
    ReviewedClose,
)
from recon.month.stated import StatedMonth
from recon.month.statement import (
    DIFFERENCES,
    GROUPS,
    ITEMS,
    MOVEMENTS,
    OPEN,
    RESERVE_MOVED,
    STRADDLES,
    StatementRow,
    blocks_of,
    prior_items,
)
from reports.drawing.blocks import (
    Block,
    Column,
    Listing,
    Row,
    Sheet,
    TextLine,
    Workbook,
    check_of,
    rows_of,
)
from reports.drawing.look import NAVY, CellLink, Tone
from reports.sheets.assurance import TITLE as ASSURANCE
from reports.sheets.assurance import added_up
from reports.sheets.labels import TABLES, as_text, label_of

Files = Mapping[str, str]
"""Name -> content of the files that accompany the workbook."""
GUIDE_COLUMNS = (
    Column("Word", 28, "word", tone="strong"),
    Column("What it means", 130, "meaning", wrap=True),
)


def close_workbook(close: PreparedClose, seen: ReviewedClose) -> bytes:
    """Render the workbook of a close; the same close gives the same bytes.

    `seen` (from `reviewed_close`) holds the digest of the close, and its files.
    """
    stated, files = close.stated, seen.files
    statement = stated.statement
    title = f"Statement {'/'.join(statement.account)} {statement.month.name}"
    sheets = [close_sheet(close, digest=seen.digest)]
    sheets += [statement_sheet(stated), open_items(stated).sheet(files=files)]
    if statement.transit is not None:
        sheets.append(transit(statement.transit).sheet(files=files))
    if statement.ledger is not None:
        sheets.append(ledger(statement.ledger).sheet(files=files))
    sheets.append(straddling(statement.straddling).sheet(files=files))
    sheets += [journals_sheet(close), open_breaks_sheet(close)]
    sheets.append(prior_periods(stated).sheet(files=files))
    sheets.append(movements(statement.facts).sheet(files=files))
    sheets.append(assurance_sheet(stated))
    rows = [
        {"word": label, "meaning": meaning} for label, meaning in TABLES["guide_of_month"].items()
    ]
    about = "How to read this workbook."
    sheets.append(Sheet("Guide", [Listing(GUIDE_COLUMNS, rows)], heading="Guide", about=about))
    written = datetime.combine(statement.month.last, time())
    footer = title.replace("Statement", "Close", 1)
    return Workbook(title, sheets, written, footer=footer).content()


TITLE = "Statement"
TROUBLES_MAX = 12
"""Maximum number of sentences on the page; the accompanying files have all of them."""
BLOCKS = ("The gateway", "On the way to the bank", "The ledger")
_INDENT = "    "


def _tone(row: Row) -> Tone:
    kind = row["kind"]
    return "total" if kind == "close" else {"open": "strong", "note": "muted"}.get(kind, "")


def statement_sheet(stated: StatedMonth) -> Sheet:
    """The account statement: verdict, problems, then the blocks of each currency."""
    statement = stated.statement
    which = "/".join(statement.account)
    verdict, tone = (PROVEN, "good") if stated.is_proven else (NOT_PROVEN, "bad")
    left = len(stated.troubles) - TROUBLES_MAX
    return Sheet(
        TITLE,
        [
            TextLine(f"Statement of account {which}, {statement.month.name}", "title"),
            *(TextLine(sentence, "muted") for sentence in _about(stated)),
            TextLine(verdict, f"verdict {tone}"),
            *(TextLine(sentence, "note") for sentence in stated.troubles[:TROUBLES_MAX]),
            *([TextLine(f"and {left} more: see Assurance", "note")] if left > 0 else []),
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
    yield from stated.notes
    if stated.statement.transit is None:
        yield "The bank is not covered: no statement of it was given."
    if stated.statement.ledger is None:
        yield "The ledger is not covered: no ledger was given."
    if len(stated.rules) > 1:
        times = len(stated.rules) - 1
        yield f"The rules changed {times} times (see Assurance); the newest ones date."


def _of_currency(stated: StatedMonth, *, currency: str) -> Iterator[Block]:
    """The blocks of one currency; each closing is the sum of the rows above it."""
    statement = stated.statement
    there = (True, statement.transit is not None, statement.ledger is not None)
    named = [name for name, is_there in zip(BLOCKS, there, strict=True) if is_there]
    for about, block in zip(named, blocks_of(statement, currency=currency), strict=True):
        columns = (
            Column(about, 62, "label", tone=_tone),
            Column("Count", 10, "count", "count", tone=_tone),
            Column("Amount", 22, "amount", "money", tone=_tone),
            Column("Check", 12, "check", "check"),
        )
        title = currency if about == BLOCKS[0] else ""
        yield Listing(columns, _rows(block, currency=currency), title=title)


def _rows(block: Sequence[StatementRow], *, currency: str) -> list[dict[str, Any]]:
    place = [row.kind for row in block].index("close")
    moved = sum(row.amount for row in block[:place] if row.kind != "note")
    listed = sum(row.amount for row in block if row.kind == "listed")
    total = block[place].amount
    holds = moved == total == listed
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
"""Sized so that they fill A4 at 100 %: the page is also signed on paper."""
BLOCKERS_MAX = 1_000
"""Maximum number of rows on the page; blockers.csv has all of them."""
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
OPEN_ITEMS = (
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
    Column("What is wrong", 32, lambda row: label_of(row["code"]).title),
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
    """The first page: verdict, next steps, closing balances, blockers and open items.

    `digest` is that of everything its two signatories sign.
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
            *_names(close),
            Listing(CLOSINGS, [*_closings(close)]),
            Listing(
                BLOCKERS,
                [
                    asdict(each) | {"what": as_text(each.what, code=each.code)}
                    for each in close.blockers[:BLOCKERS_MAX] or (Blocker("Nothing.", "", ""),)
                ],
            ),
            Listing(OPEN_ITEMS, [*_open_items(close)]),
            *_estimates(close),
        ],
        widths=WIDTHS,
        frozen=(1, 0),
        colour=NAVY,
    )


def journals_sheet(close: PreparedClose) -> Sheet:
    """The journals to be booked, and a check per currency and month that debits equal credits."""
    lines = close.stated.statement.journals
    sentence = "What is to be booked: permanent, or accrued and reversed next day."
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
            Listing(SUMS, sums, nothing=""),
        ],
        heading="Journals",
        about=sentence,
    )


def open_breaks_sheet(close: PreparedClose) -> Sheet:
    """Breaks that the last run before the close left open, with the answers given since."""
    rows = [*with_answers(rows_of(close.stated.statement.breaks), close.answers)]
    sentence = "Open at the close, as its last night shows it; owner and comment as answered since."
    blocks = [Listing(BREAK_COLUMNS, rows, is_list=True)]
    return Sheet("Open breaks", blocks, heading="Open breaks", about=sentence)


def _next_steps(close: PreparedClose, *, digest: str) -> Iterator[str]:
    """What the reader does next, and the digest to sign."""
    statement = close.stated.statement
    merchant_id, account_id = statement.account
    account = f"{statement.month.name} --merchant {merchant_id} --account {account_id}"
    if close.blockers and not close.signatures:
        yield f"Nothing can be signed yet: clear what blocks it, then recon close {account}"
    elif not close.signatures:
        yield f"To sign: recon close {account} --sign reviewer --as NAME --digest {digest[:16]}"
        yield "then an approver, who is another person, by the same with --sign approver"
    yield f"Digest {digest}"


def _names(close: PreparedClose) -> Iterator[Block]:
    """The signatures, and whether the month was reopened."""
    if (reopened := close.state.reopened) is not None:
        yield TextLine(
            f"Reopened on {reopened.at:%Y-%m-%d %H:%M} UTC by {reopened.by}: {reopened.reason}. "
            f"Close {len(close.state.closes)} and its folder stay.",
            "note",
            len(WIDTHS),
        )
    if close.signatures:
        names = ("by", "role", "at")
        rows = [{name: getattr(each, name) for name in names} for each in close.signatures]
        yield Listing(SIGNED, rows)


def _closings(close: PreparedClose) -> Iterator[dict[str, Any]]:
    """The closing balances of the statement, by label and currency."""
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


def _open_items(close: PreparedClose) -> Iterator[dict[str, Any]]:
    for each in close.open_items or (OpenItem("Nothing.", 0, "", 0, ""),):
        yield {
            "what": as_text(each.what, code=each.code),
            "count": each.count or None,
            "amount": each.amount if each.currency else None,
            "currency": each.currency,
            "sheet": CellLink(each.sheet, f"'{each.sheet}'!A4") if each.sheet else "",
        }


def _estimates(close: PreparedClose) -> Iterator[Block]:
    """Fees not charged yet, labelled as an estimate."""
    estimates = sorted(close.stated.statement.estimates.items())
    if estimates:
        rows = [{"label": ESTIMATE, "amount": amount, "currency": c} for c, amount in estimates]
        columns = (Column("Beside", 58, "label", span=2, wrap=True, tone="note"), *CLOSINGS[1:3])
        yield Listing(columns, rows)


LIST_ROWS_MAX, LIST_ROWS_DISPLAYED = 10_000, 1_000
"""Above this many rows a list is reduced to its sums and its first LIST_ROWS_DISPLAYED rows."""
ROWS = "Rows"
ITEM_COLUMNS = (
    Column("Close", 10, "at"),
    Column("What", 40, "label"),
    Column("Ccy", 6, "currency"),
    Column("Amount", 18, "amount", "money"),
    Column("Since", 12, "since", "date"),
    Column("Payment or batch", 28, "key"),
    Column("Order", 22, "order_no"),
)
TRANSIT_COLUMNS = (
    Column("Batch", 26, "batch_id"),
    Column("Ccy", 6, "currency"),
    Column("Amount", 18, "amount", "money"),
    Column("Since", 12, "since", "date"),
    Column("State", 12, "state"),
    Column("Break", 28, "code"),
)
BOOK_COLUMNS = (
    Column("What", 40, "label"),
    Column("Ccy", 6, "currency"),
    Column("Order or group", 28, "key"),
    Column("Ledger less gateway", 20, "amount", "money"),
    Column("As the nights show it", 22, "reported", "money"),
    Column("Shown", 12, "is_reported"),
)
STRADDLING_COLUMNS = (
    Column("What", 46, "label"),
    Column("First", 12, "first_on", "date"),
    Column("Then", 12, "then_on", "date"),
    Column("Ccy", 6, "currency"),
    Column("Amount", 18, "amount", "money"),
    Column("Payment or batch", 28, "key"),
    Column("Order", 22, "order_no"),
)
FACT_COLUMNS = (
    Column("Business date", 14, "event_on", "date"),
    Column("What", 34, "label"),
    Column("Ccy", 6, "currency"),
    Column("Amount", 18, "amount", "money"),
    Column("Counts", 8, "counts"),
    Column("Payment", 24, "payment"),
    Column("Order", 20, "order_no"),
    Column("Batch", 24, "batch_id"),
    Column("Dated by", 14, "dated_by"),
    Column("First reported", 12, "reported_on", "date"),
    Column("Late", 6, "late"),
)
PRIOR_COLUMNS = (
    Column("Its own date", 14, "own_on", "date"),
    Column("Counts on", 14, "event_on", "date"),
    Column("What", 34, "label"),
    Column("Ccy", 6, "currency"),
    Column("Amount", 18, "amount", "money"),
    Column("Payment", 24, "payment"),
    Column("Order", 20, "order_no"),
    Column("Batch", 24, "batch_id"),
    Column("First reported", 12, "reported_on", "date"),
)
ASSURANCE_WIDTHS = (16, 26, 34, 10, 10, 20, 20, 10)
NIGHTS = (
    Column("Business date", 16, "business_date", "date"),
    Column("Night", 26, "status"),
    Column("Run", 34, "run_id"),
    Column("What is wrong", 70, "trouble", span=5, wrap=True),
)
PROOF = (
    Column("Id", 16, "id"),
    Column("What is compared", 60, "name", span=2, wrap=True),
    Column("Ccy", 10, "currency"),
    Column("Measure", 10, "measure"),
    Column("Left", 20, "left", "money", currency="of"),
    Column("Right", 20, "right", "money", currency="of"),
    Column("Check", 10, "check", "check"),
)


@dataclass(frozen=True, slots=True)
class MonthList:
    """One list of the workbook: how it is drawn, and how it is summed when it is too long."""

    title: str
    columns: Sequence[Column]
    frame: pd.DataFrame
    by: Mapping[str, str]
    """Fields of the frame to group the sums by -> the titles of their columns."""
    files: Mapping[str, int]
    """Names of the files that have all rows -> number of rows in each."""
    amounts: Sequence[str] = ("amount",)
    """Fields of the frame to sum, in minor units."""
    first: tuple[str, str] = ("", "")
    """Field and value of the rows that a shortened list shows first."""

    def sheet(self, *, files: Files) -> Sheet:
        """All rows, or the sums and the first rows; `files`: name -> content."""
        about, blocks, frame = TABLES["lists_of_month"][self.title], list[Block](), self.frame
        if len(frame) > LIST_ROWS_MAX:
            contents = {name: files[name].encode() for name in self.files}
            named = [
                ListFile(name, rows, len(contents[name]), sha256(contents[name]).hexdigest())
                for name, rows in self.files.items()
            ]
            about = added_up(f"{len(frame):,} rows", named=named, where="below")
            blocks = [self._sums(), TextLine()]
            for file in named:
                says = f"{file.rows:,} rows, {file.size_bytes:,} bytes, SHA-256 {file.sha256}"
                blocks.append(TextLine(f"{file.name}: {says}", "note"))
            name, label = self.first
            if name:
                frame = pd.concat([frame[frame[name].eq(label)], frame[frame[name].ne(label)]])
            frame = frame.iloc[:LIST_ROWS_DISPLAYED]
        title = f"The first {len(frame):,}" if blocks else ""
        blocks.append(Listing(self.columns, rows_of(frame), title=title, is_list=True))
        widths = [column.width for column in self.columns]
        return Sheet(self.title, blocks, heading=self.title, about=about, widths=widths)

    def _sums(self) -> Listing:
        """Row counts and sums of the list by its grouping fields."""
        known = {column.value: column.title for column in self.columns}
        columns = [Column(title, 20, name) for name, title in self.by.items()]
        columns.append(Column(ROWS, 20, ROWS, "count"))
        columns += [Column(known[name], 20, name, "money") for name in self.amounts]
        sums = {ROWS: pd.NamedAgg(self.amounts[0], "size")} | {
            name: pd.NamedAgg(name, lambda amounts: amounts.sum(min_count=1))
            for name in self.amounts
        }
        return Listing(columns, rows_of(self.frame.groupby([*self.by], as_index=False).agg(**sums)))


def open_items(stated: StatedMonth) -> MonthList:
    """Items that were open at the opening or the closing of the month."""
    sides = {"closing": stated.statement.closing_items, "opening": stated.statement.opening_items}
    frame = pd.concat([rows.assign(at=at) for at, rows in sides.items()], ignore_index=True)
    return MonthList(
        "Open items",
        ITEM_COLUMNS,
        frame.assign(label=_labels(frame["what"], ITEMS)),
        by={"at": "Close", "label": "What", "currency": "Ccy"},
        files={f"{at}-items.csv": len(rows) for at, rows in sides.items()},
    )


def transit(frame: pd.DataFrame) -> MonthList:
    """Payouts in transit to the bank."""
    by = {"currency": "Ccy", "state": "State", "code": "Break"}
    files = {"in-transit.csv": len(frame)}
    return MonthList("In transit", TRANSIT_COLUMNS, frame, by=by, files=files)


def ledger(frame: pd.DataFrame) -> MonthList:
    """Differences between ledger and gateway; a shortened list starts with those no run shows."""
    is_open = frame["what"].isin((OPEN, *GROUPS))
    is_alike = frame["amount"].eq(frame["shown"])
    is_reported = (
        pd.Series("yes", frame.index, dtype="str").where(is_alike, "NO").where(is_open, "")
    )
    return MonthList(
        "Ledger",
        BOOK_COLUMNS,
        frame.assign(
            label=_labels(frame["what"], DIFFERENCES),
            reported=frame["shown"].astype("Int64").where(is_open),
            is_reported=is_reported,
        ),
        by={"label": "What", "currency": "Ccy", "is_reported": "Shown"},
        files={"ledger.csv": len(frame)},
        amounts=("amount", "reported"),
        first=("is_reported", "NO"),
    )


def straddling(frame: pd.DataFrame) -> MonthList:
    """Items whose two dates lie on different sides of a close."""
    named = frame.assign(label=_labels(frame["what"], STRADDLES))
    by, files = {"label": "What", "currency": "Ccy"}, {"straddling.csv": len(frame)}
    return MonthList("Straddling", STRADDLING_COLUMNS, named, by=by, files=files)


def prior_periods(stated: StatedMonth) -> MonthList:
    """Movements dated in a closed month but reported after its close: they count in this one."""
    frame = _movements(prior_items(stated.statement.facts))
    by, files = {"label": "What", "currency": "Ccy"}, {"facts.csv": len(stated.statement.facts)}
    return MonthList("Prior periods", PRIOR_COLUMNS, frame, by=by, files=files)


def movements(facts: pd.DataFrame) -> MonthList:
    """All movements of the month."""
    outside = facts["is_outside"].astype(bool) | facts["kind"].eq("reserve")
    yes, blank = (pd.Series(label, facts.index, dtype="str") for label in ("yes", ""))
    return MonthList(
        "Facts",
        FACT_COLUMNS,
        _movements(facts).assign(
            counts=yes.where(~outside, "no"),
            late=blank.where(~facts["is_late"].astype(bool), "late"),
        ),
        by={"label": "What", "currency": "Ccy", "counts": "Counts", "late": "Late"},
        files={"facts.csv": len(facts)},
    )


def _movements(facts: pd.DataFrame) -> pd.DataFrame:
    """The movements with their labels, without boolean columns: a list cannot show them."""
    labels = _labels(facts["kind"], {**MOVEMENTS, "reserve": RESERVE_MOVED})
    return facts.drop(columns=["is_outside", "is_late", "reported"]).assign(label=labels)


def _labels(names: "pd.Series[str]", labels: Mapping[str, str]) -> "pd.Series[str]":
    """The label of each name; a name without one is a defect."""
    return names.map({name: labels[str(name)] for name in names.unique()}).astype("str")


def assurance_sheet(stated: StatedMonth) -> Sheet:
    """The runs of the month, their rules, and both sides of each equation."""
    names = [str(column.value) for column in NIGHTS]
    nights = [{name: getattr(each, name) for name in names} for each in stated.nights]
    rules = [
        TextLine(f"Rules from the night of {day}: {digest}", "note")
        for digest, day in stated.rules.items()
    ]
    proof = [
        {name: getattr(each, name) for name in ("id", "name", "currency", "measure")}
        | {"left": each.left, "right": each.right}
        | {"of": each.currency if each.measure == "amount" else ""}
        | {"check": check_of(holds=each.holds)}
        for each in stated.statement.equations
    ]
    return Sheet(
        ASSURANCE,
        [
            Listing(NIGHTS, nights, title="Nights"),
            *rules,
            Listing(PROOF, proof, title="Proof", is_list=True),
        ],
        heading=ASSURANCE,
        about=TABLES["lists_of_month"][ASSURANCE],
        widths=ASSURANCE_WIDTHS,
    )
