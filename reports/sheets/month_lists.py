"""The lists behind a statement: open items, transit, books, straddling, nights, proof, facts.

Of a list of too many rows a workbook has what they come to and the first of them. All rows stand in
CSV files of the same close or statement, which the sheet names with rows and SHA-256.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recon.model.figures import ListFile
from recon.steps.month.stated import StatedMonth
from recon.steps.month.statement import (
    DIFFERENCES,
    GROUPS,
    ITEMS,
    MOVEMENTS,
    OPEN,
    RESERVE_MOVED,
    STRADDLES,
    prior_items,
)
from reports.drawing.blocks import Column, Listing, Part, Sheet, TextLine, check_of, rows_of
from reports.sheets.lists import added_up

Files = Mapping[str, str]
"""Name -> content of the files beside the workbook."""
LIST_ROWS_MAX, LIST_ROWS_SHOWN = 10_000, 1_000
"""Of a list of more rows than the first number a workbook has the sums, and so many rows."""
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
    Column("Books less gateway", 20, "amount", "money"),
    Column("As the nights show it", 22, "told", "money"),
    Column("Shown", 12, "is_shown"),
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
    Column("First told", 12, "told_on", "date"),
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
    Column("First told", 12, "told_on", "date"),
)
NIGHTS = (
    Column("Business date", 16, "business_date", "date"),
    Column("Night", 26, "standing"),
    Column("Run", 30, "run_id"),
    Column("What is wrong", 70, "trouble", wrap=True),
)
PROOF = (
    Column("Id", 6, "id"),
    Column("What is held against what", 74, "name"),
    Column("Ccy", 6, "currency"),
    Column("Measure", 10, "measure"),
    Column("Left", 20, "left", "money", currency="of"),
    Column("Right", 20, "right", "money", currency="of"),
    Column("Check", 10, "check", "check"),
)
SENTENCES = {
    "Open items": "What the gateway owed at the two closes, item by item; sums stand on page one.",
    "In transit": "Paid out and not at the bank at the last close; a break says why.",
    "Books": "Why the books differ from the gateway at the last close, by order or group.",
    "Straddling": "What lies across a close, with both dates; no second date: it has not come yet.",
    "Prior periods": (
        "Dated in a closed month and told after its close: it counts here, the close stays."
    ),
    "Nights": "Every business date of the month, and what is wrong with its night.",
    "Proof": "Both sides of each equation, in SQL over the sealed files of the nights.",
    "Facts": "Every movement of the month by the business date of its own event.",
}


@dataclass(frozen=True, slots=True)
class MonthList:
    """How a list is drawn, and how its rows are added up where they are too many."""

    title: str
    columns: Sequence[Column]
    frame: pd.DataFrame
    by: Mapping[str, str]
    """Fields of the frame that its sums are by -> the titles of their columns."""
    files: Mapping[str, int]
    """Names of the files that have all rows -> how many of them each has."""
    amounts: Sequence[str] = ("amount",)
    """Fields of the frame that are added up: minor units."""
    first: tuple[str, str] = ("", "")
    """Of too many rows those stand first of which this field says this."""

    def sheet(self, *, files: Files) -> Sheet:
        """All rows, or their sums and the first ones; `files`: name -> content."""
        about, blocks, frame = SENTENCES[self.title], list[Part](), self.frame
        if len(frame) > LIST_ROWS_MAX:
            named = [*self._named(files)]
            about = added_up(f"{len(frame):,} rows", named=named, where="below")
            sums = Listing(self._sum_columns(), self._sums())
            blocks = [sums, TextLine(), *map(_file, named), TextLine()]
            name, word = self.first
            if name:
                frame = pd.concat([frame[frame[name].eq(word)], frame[frame[name].ne(word)]])
            frame = frame.iloc[:LIST_ROWS_SHOWN]
        title = f"The first {len(frame):,}" if blocks else ""
        blocks.append(Listing(self.columns, rows_of(frame), title=title, is_list=True))
        widths = [column.width for column in self.columns]
        return Sheet(self.title, blocks, heading=self.title, about=about, widths=widths)

    def _sum_columns(self) -> list[Column]:
        words = [Column(title, 20, name) for name, title in self.by.items()]
        known = {column.value: column.title for column in self.columns}
        money = [Column(known[name], 20, name, "money") for name in self.amounts]
        return [*words, Column(ROWS, 20, ROWS, "count"), *money]

    def _sums(self) -> list[dict[str, Any]]:
        """By what the list is added up: how many rows, and what they come to."""
        grouped = self.frame.groupby([*self.by], as_index=False)
        sums = {name: pd.NamedAgg(name, _sum) for name in self.amounts}
        return rows_of(grouped.agg(**{ROWS: pd.NamedAgg(self.amounts[0], "size")}, **sums))

    def _named(self, files: Files) -> Iterator[ListFile]:
        for name, rows in self.files.items():
            content = files[name].encode()
            yield ListFile(name, rows, len(content), hashlib.sha256(content).hexdigest())


def _sum(amounts: "pd.Series[int]") -> Any:
    return amounts.sum(min_count=1)


def _file(file: ListFile) -> TextLine:
    about = f"{file.rows:,} rows, {file.size_bytes:,} bytes, SHA-256 {file.sha256}"
    return TextLine(f"{file.name}: {about}", "note")


def open_items(stated: StatedMonth) -> MonthList:
    """What was open at both closes."""
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
    """What is on the way to the bank."""
    by = {"currency": "Ccy", "state": "State", "code": "Break"}
    files = {"in-transit.csv": len(frame)}
    return MonthList("In transit", TRANSIT_COLUMNS, frame, by=by, files=files)


def books(frame: pd.DataFrame) -> MonthList:
    """Where books and gateway differ; of too many rows those that no night shows stand first."""
    is_open = frame["what"].isin((OPEN, *GROUPS))
    is_alike = frame["amount"].eq(frame["shown"])
    is_shown = pd.Series("yes", frame.index, dtype="str").where(is_alike, "NO").where(is_open, "")
    return MonthList(
        "Books",
        BOOK_COLUMNS,
        frame.assign(
            label=_labels(frame["what"], DIFFERENCES),
            told=frame["shown"].astype("Int64").where(is_open),
            is_shown=is_shown,
        ),
        by={"label": "What", "currency": "Ccy", "is_shown": "Shown"},
        files={"books.csv": len(frame)},
        amounts=("amount", "told"),
        first=("is_shown", "NO"),
    )


def straddling(frame: pd.DataFrame) -> MonthList:
    """What lies across a close."""
    named = frame.assign(label=_labels(frame["what"], STRADDLES))
    by, files = {"label": "What", "currency": "Ccy"}, {"straddling.csv": len(frame)}
    return MonthList("Straddling", STRADDLING_COLUMNS, named, by=by, files=files)


def prior_periods(stated: StatedMonth) -> MonthList:
    """What is dated in a closed month and was told after its close: it counts in this one."""
    frame = _movements(prior_items(stated.statement.facts))
    by, files = {"label": "What", "currency": "Ccy"}, {"facts.csv": len(stated.statement.facts)}
    return MonthList("Prior periods", PRIOR_COLUMNS, frame, by=by, files=files)


def movements(facts: pd.DataFrame) -> MonthList:
    """Every movement of the month."""
    outside = facts["is_outside"].astype(bool) | facts["kind"].eq("reserve")
    yes, blank = (pd.Series(word, facts.index, dtype="str") for word in ("yes", ""))
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
    """Facts with what they are; a list has no truth values."""
    labels = _labels(facts["kind"], {**MOVEMENTS, "reserve": RESERVE_MOVED})
    return facts.drop(columns=["is_outside", "is_late", "told"]).assign(label=labels)


def _labels(names: "pd.Series[str]", words: Mapping[str, str]) -> "pd.Series[str]":
    """The words of each; a name without any is a defect."""
    return names.map({name: words[str(name)] for name in names.unique()}).astype("str")


def nights_sheet(stated: StatedMonth) -> Sheet:
    """The nights of the month, and the rules that judged."""
    rows = [{name: getattr(each, str(name)) for name in _fields(NIGHTS)} for each in stated.nights]
    rules = [
        TextLine(f"Rules from the night of {day}: {digest}", "note")
        for digest, day in stated.rules.items()
    ]
    blocks: list[Part] = [Listing(NIGHTS, rows, is_list=True), TextLine(), *rules]
    return Sheet("Nights", blocks, heading="Nights", about=SENTENCES["Nights"])


def proof_sheet(stated: StatedMonth) -> Sheet:
    """The equations; each check is over the two figures beside it."""
    rows = [
        {name: getattr(each, name) for name in ("id", "name", "currency", "measure")}
        | {"left": each.left, "right": each.right}
        | {"of": each.currency if each.measure == "amount" else ""}
        | {"check": check_of(holds=each.holds)}
        for each in stated.statement.equations
    ]
    blocks = [Listing(PROOF, rows, is_list=True)]
    return Sheet("Proof", blocks, heading="Proof", about=SENTENCES["Proof"])


def _fields(columns: Sequence[Column]) -> list[Any]:
    return [column.value for column in columns]
