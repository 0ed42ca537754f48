"""Files as other programs export them, made from what is true of them: 48 shapes, by a seed.

Nothing of the product is used: amounts, dates and encodings are written by plain Python, and what
is true of every row (minor units, moments in UTC, ids, words) stands beside the bytes.
"""

import csv
import io
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import openpyxl
from pydantic import BaseModel, ConfigDict

MERCHANT, ACCOUNT = "100042", "100042001"
DECIMALS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "PLN": 2, "GBP": 2, "CHF": 2}
Row = dict[str, Any]
"""Our column -> minor units, moment in UTC, day, or text."""


class Shape(BaseModel):
    """One way in which a program exports; a table of shapes.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    kind: str
    columns: str
    """`Their name=ours`, separated by |; `-` in place of ours: nothing of ours."""
    layout: dict[str, Any] = {}
    """What is true of it, in the keys of a layout, beside the columns."""
    words: dict[str, str] = {}
    """Ours -> theirs, of its one column of words."""
    clock: str = "%Y-%m-%dT%H:%M:%SZ"
    """How a moment is written: a pattern of `strftime`, or a name of _CLOCKS."""
    day: str = "%Y-%m-%d"
    """How a day is written."""
    written_in: str = ""
    """The zone whose offset moments bear."""
    currencies: tuple[str, ...] = ("EUR",)
    before: tuple[str, ...] = ()
    """Lines before the header."""
    total: str = ""
    """First cell of a last row of totals."""
    zone: str = ""
    """Of moments, where they are written without an offset."""
    xlsx: bool = False
    lower: bool = False
    """Currencies in small letters."""
    days_max: int = 28
    """Latest day of a month."""
    asked: frozenset[str] = frozenset()
    """What must be asked, and nothing else."""
    line_end: str = "\r\n"
    quoted: bool = False
    days_alone: bool = False
    """Moments are written as days."""
    payouts: str = ""
    """Batches end with a payout: of their sum (`tied`), or of another one (`untied`)."""


@dataclass(frozen=True)
class Export:
    """A file, and what is true of it."""

    name: str
    shape: Shape
    content: bytes
    columns: Mapping[str, str]
    """Ours -> theirs."""
    rows: tuple[Row, ...]


def _serial(at: datetime) -> float:
    return (at.replace(tzinfo=UTC) - datetime(1899, 12, 30, tzinfo=UTC)) / timedelta(days=1)


def _mixed(at: datetime) -> str:
    offset = timezone(timedelta(hours=at.minute % 5 - 2))
    return at.astimezone(offset).isoformat(timespec="seconds")


_CLOCKS: Mapping[str, Callable[[datetime], Any]] = {
    "mixed": _mixed,
    "serial": _serial,
    "typed": lambda at: at.replace(tzinfo=None),
    "unix": lambda at: str(int(at.timestamp())),
}
"""Moments that no pattern writes."""

SHAPES = tuple(
    Shape.model_validate(table)
    for table in tomllib.loads(Path(__file__).with_name("shapes.toml").read_text("utf-8"))["shapes"]
)

_TEXTS = ("Ærø & Søn", "Müller GmbH", 'said "soon"', "plain", "a; b, c | d", "żółć", "")


def made(shape: Shape, *, seed: int) -> Export:
    """A file of this shape."""
    chance = Random(f"{shape.name} {seed}")
    pairs = [pair.rpartition("=") for pair in shape.columns.split("|")]
    header = [their for their, _, _ in pairs]
    columns = {ours: their for their, _, ours in pairs if not ours.startswith("-")}
    rows = _truth(shape, chance=chance)
    marks = [ours for _, _, ours in pairs]
    written = [[_cell(row, ours, shape=shape, chance=chance) for ours in marks] for row in rows]
    total = [[shape.total, *[""] * (len(header) - 1)]] if shape.total else []
    grid = [[line] for line in shape.before] if shape.xlsx else []
    ending = "xlsx" if shape.xlsx else "csv"
    grid += [header, *written, *total]
    content = _book(grid) if shape.xlsx else _text(grid, shape=shape)
    prefix = "instructions-" if shape.kind == "instructions" else ""
    return Export(f"{prefix}{shape.name}-{seed}.{ending}", shape, content, columns, rows)


def _truth(shape: Shape, *, chance: Random) -> tuple[Row, ...]:
    rows = []
    balance = chance.randrange(10**6)
    for number in range(chance.randrange(25, 60)):
        day = date(2026, chance.randrange(1, 13), chance.randrange(1, shape.days_max + 1))
        hour, minute = chance.randrange(9, 18), chance.randrange(60)
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
        units = chance.choice((chance.randrange(100, 10**5), chance.randrange(10**5, 10**8)))
        row = {
            "order_no": f"{chance.choice('ABK')}-{1000 + number}",
            "transaction_id": f"tx{chance.randrange(10**8):08}",
            "reference_no": f"R{number:05}",
            "currency": chance.choice(shape.currencies),
            "amount": units,
            "at": at,
            "day": day,
            "word": chance.choice(list(shape.words) or [""]),
            "request_id": f"rq{number}",
            "reason": "sold out",
            "entry_id": f"E{number:06}",
            "batch_id": f"B{number // 20}",
            "iban": "DE89370400440532013000",
            "statement_no": "7",
            "from_date": date(2026, 1, 1),
            "to_date": date(2026, 12, 31),
            "entry_no": str(number + 1),
            "counterparty": "Acquirer",
            "text": f"payout {number}",
        }
        if shape.kind == "settlement":
            if row["word"] in {"payout", "reserve"}:
                row["word"] = "capture"
            row["gross"] = units if row["word"] == "capture" else -units
            if shape.payouts and row["word"] == "refund":
                row["gross"] = -units % 10_000 - 10_000  # what is paid out is above 0
            row["fee"] = chance.randrange(1, 100)
            row["net"] = row["gross"] - row["fee"]
        if shape.kind == "bank":
            row["amount"] = units * chance.choice((1, 1, -1))
        rows.append(row)
    if shape.payouts:
        rows = _with_payouts(rows, tied=shape.payouts == "tied")
    rows[0]["at"], rows[0]["day"] = _first_day(shape, rows[0])
    for row in rows if shape.days_alone else ():
        local = row["at"].astimezone(ZoneInfo(shape.zone))
        row["at"] = local.replace(hour=0, minute=0).astimezone(UTC)
    booked = sum(row["amount"] for row in rows)
    for row in rows:
        row["opening"], row["closing"] = balance, balance + booked
    return tuple(rows)


def _with_payouts(rows: list[Row], *, tied: bool) -> list[Row]:
    """The lines of settlements, each batch with the line that pays it out, and one of a reserve."""
    paid = []
    for batch in dict.fromkeys(row["batch_id"] for row in rows):
        lines = [row for row in rows if row["batch_id"] == batch]
        kept = {**lines[0], "word": "reserve", "order_no": f"R-{batch}", "gross": -700, "fee": 0}
        kept["net"] = kept["gross"]
        total = sum(row["net"] for row in (*lines, kept)) - (0 if tied else 300)
        out = {**lines[0], "word": "payout", "order_no": f"P-{batch}", "fee": 0}
        paid += [*lines, kept, out | {"gross": total, "net": total}]
    return paid


def _first_day(shape: Shape, row: Row) -> tuple[datetime, date]:
    """Where days may pass 12, one does; else one differs from its month."""
    day = 25 if shape.days_max > 12 else 4
    at = row["at"].replace(day=day, month=3)
    return at, at.date()


_DATES = {"settled_on", "booked_on", "value_on"}
_WORDS = {"status", "entry_type", "kind"}


def true_value(row: Row, ours: str) -> Any:
    """What is true of a row, by our column."""
    if ours in {"ordered_at", "booked_at", "updated_at"}:
        return row["at"]
    if ours in _DATES:
        return row["day"]
    return row["word"] if ours in _WORDS else row[ours]


def _cell(row: Row, ours: str, *, shape: Shape, chance: Random) -> Any:
    """A cell as the program writes it."""
    if ours.startswith("-"):
        return _cell_of_theirs(row, ours, shape=shape, chance=chance)
    value = true_value(row, ours)
    match value:
        case datetime():
            at = _local(value, shape)
            return _CLOCKS[shape.clock](at) if shape.clock in _CLOCKS else at.strftime(shape.clock)
        case date():
            return value.strftime(shape.day)
        case int():
            return _signed(value, row, ours, shape=shape)
    if ours == "currency":
        return value.lower() if shape.lower else value
    return shape.words[value] if ours in _WORDS else value


def _cell_of_theirs(row: Row, mark: str, *, shape: Shape, chance: Random) -> Any:
    """A cell of a column that is none of ours by itself."""
    if mark.startswith("-debit "):
        value = row[mark.removeprefix("-debit ")]
        return _amount(-value, row, shape=shape) if value < 0 else ""
    if mark == "-sign":
        if shape.kind == "ledger":
            # Seen from the account of the gateway, or from the account of what was sold.
            is_debit = (row["word"] == "capture") == (shape.name == "datev-konto")
            return "S" if is_debit else "H"
        return ("Bij", "Af")[row["amount"] < 0]
    if mark == "-amount":
        return _amount(row["amount"] + 100, row, shape=shape)
    others = {
        "-clock": _local(row["at"], shape).strftime("%H:%M:%S"),
        "-date": (row["day"] - timedelta(days=3)).isoformat(),
        "-id": f"k{row['transaction_id']}",
    }
    if mark in others:
        return others[mark]
    any_text = shape.layout.get("encoding", "utf-8").startswith("utf") and not shape.xlsx
    return chance.choice(_TEXTS) if any_text else "x"


def _signed(value: int, row: Row, ours: str, *, shape: Shape) -> Any:
    """An amount with the sign that the program gives it."""
    if f"-debit {ours}" in shape.columns and value < 0:
        return ""
    if ours == "amount" and "=-sign" in shape.columns:
        value = abs(value)
    negated = ours in shape.layout.get("negated", ())
    negated ^= ours in shape.layout.get("negated_rows", {}).get(row["word"], ())
    return _amount(-value if negated else value, row, shape=shape)


def _local(at: datetime, shape: Shape) -> datetime:
    zone = shape.zone or shape.written_in
    return at.astimezone(ZoneInfo(zone)) if zone else at


def _amount(units: int, row: Row, *, shape: Shape) -> Any:
    decimals = DECIMALS[row["currency"]]
    if shape.xlsx:
        return units / 10**decimals
    if shape.layout.get("units") == "minor":
        return str(units)
    digits = f"{abs(units):0{decimals + 1}}"
    whole, fraction = (digits[:-decimals], digits[-decimals:]) if decimals else (digits, "")
    whole = f"{int(whole):,}".replace(",", shape.layout.get("thousands_sign", ""))
    text = whole + (shape.layout.get("decimal_sign", ".") + fraction if fraction else "")
    if units >= 0:
        return text
    return {"before": f"-{text}", "behind": f"{text}-", "brackets": f"({text})"}[
        shape.layout.get("minus", "before")
    ]


def _text(grid: list[list[Any]], *, shape: Shape) -> bytes:
    out = io.StringIO(newline="")
    out.writelines(line + shape.line_end for line in shape.before)
    writer = csv.writer(
        out,
        delimiter=shape.layout.get("delimiter", ","),
        quoting=csv.QUOTE_ALL if shape.quoted else csv.QUOTE_MINIMAL,
        lineterminator=shape.line_end,
    )
    for number, cells in enumerate(grid):
        if shape.name == "quoted-newlines" and number % 3 == 1:
            cells[1] = f"two\r\nlines {number}"
        writer.writerow(cells)
    return out.getvalue().encode(shape.layout.get("encoding", "utf-8"))


def _book(grid: list[list[Any]]) -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for cells in grid:
        book.active.append(cells if any(cell != "" for cell in cells) else [])
    book.save(out)
    return out.getvalue()
