"""Exports that nobody prepared for: what is asked of them, and that every amount is then read."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import openpyxl
import pytest

from recon.config.rules import Rules
from recon.files.typing.table_schema import ORDER_FILE
from recon.files.typing.typed_table import read_table
from recon.steps.files.proposed_layouts import Proposed, propose_layout
from tests.recon.files.proposing.exports import ACCOUNT, MERCHANT

ORDERS = 40
BEGAN = datetime(2026, 11, 20, 0, 7, tzinfo=UTC)


class Order(NamedTuple):
    """What is true of a row."""

    number: int
    at: datetime
    units: int
    """Minor ones, of two decimals."""


TRUE = tuple(
    Order(n, BEGAN + timedelta(minutes=29 * n), 99 + n * 70_003 % 450_000) for n in range(ORDERS)
)
SUM = sum(order.units for order in TRUE)


def _grouped(units: int, *, thousands: str, decimal: str) -> str:
    whole, cents = divmod(units, 100)
    return f"{whole:,}".replace(",", thousands) + f"{decimal}{cents:02}"


def german_shop() -> bytes:
    """cp1252, title lines, a comma for the decimals, a sum at the end."""
    lines = [
        "Bestellexport Gartenfreund Müller GmbH",
        "Erstellt am: 21.11.2026 07:12 Uhr;;;;;",
        "",
        "Bestellnummer;Bestelldatum;Kunde;Bestellwert (EUR);Versandkosten;Zahlstatus",
    ]
    for order in TRUE:
        amount = _grouped(order.units, thousands=".", decimal=",")
        word = ("Bezahlt", "Offen", "Storniert")[order.number % 3]
        lines.append(f"GF-{order.number};{order.at:%d.%m.%Y %H:%M};Groß;{amount};4,90;{word}")
    return "\r\n".join([*lines, "Summe;;;1.234,56;;", ""]).encode("cp1252")


def american_shop() -> bytes:
    """Signs of dollars, months first, the clock with AM and PM, names in quotes."""
    lines = ["Order ID,Created At,Customer,Total,Currency,Financial Status"]
    for order in TRUE:
        amount = _grouped(order.units, thousands=",", decimal=".")
        day = f"{order.at.month}/{order.at.day}/{order.at.year} {order.at:%I:%M %p}"
        word = ("paid", "voided", "pending")[order.number % 3]
        lines.append(f'"#{order.number}",{day},"Smith, J","${amount}",USD,{word}')
    return ("\n".join(lines) + "\n").encode()


def british_marks() -> bytes:
    """The sign of the currency is all that says which it is."""
    lines = ["Order No;Placed;Order value;State"]
    for order in TRUE:
        amount = _grouped(order.units, thousands=",", decimal=".")
        lines.append(f"W{order.number};{order.at:%Y-%m-%dT%H:%M:%SZ};£ {amount};paid")
    return ("\n".join(lines) + "\n").encode()


def tabs() -> bytes:
    """Tabs, everything quoted, an ending of its name that says nothing."""
    lines = ['"Order Ref"\t"Placed"\t"Gross"\t"Ccy"\t"State"']
    for order in TRUE:
        amount = _grouped(order.units, thousands=",", decimal=".")
        word = ("Complete", "Cancelled")[order.number % 2]
        cells = (f"W{order.number}", f"{order.at:%Y-%m-%d %H:%M:%S} +0000", amount, "GBP", word)
        lines.append("\t".join(f'"{cell}"' for cell in cells))
    return ("\n".join(lines) + "\n").encode()


def book() -> bytes:
    """Two lines of headings, dates and numbers as Excel has them, a row of totals."""
    made, out = openpyxl.Workbook(), io.BytesIO()
    sheet = made.active
    sheet.append(["Order", "", "", "Payment"])
    sheet.append(["Number", "Date", "Channel", "Amount", "Currency", "Status", "Reference"])
    for order in TRUE:
        at = order.at.replace(tzinfo=None)
        word = ("PAID", "OPEN")[order.number % 2]
        name = f"SO{order.number}"
        sheet.append([name, at, "web", order.units / 100, "CHF", word, f"R{order.number}"])
    sheet.append(["Total", "", "", SUM / 100])
    made.save(out)
    return out.getvalue()


def json_lines() -> bytes:
    """Objects in objects, amounts in cents, a list that nobody reads."""
    lines = [
        {
            "id": f"ord_{order.number}",
            "created": f"{order.at:%Y-%m-%dT%H:%M:%S}Z",
            "amount": {"value": order.units, "currency": "EUR"},
            "status": ("succeeded", "canceled", "requires_capture")[order.number % 3],
            "items": [{"sku": "a", "price": 7}, {"sku": "b", "price": 9}],
        }
        for order in TRUE
    ]
    return "\n".join(map(json.dumps, lines)).encode()


EXPORTS: dict[str, tuple[Callable[[], bytes], str, dict[str, str]]] = {
    "de-shop.csv": (german_shop, "EUR", {"zone": "Europe/Berlin"}),
    "us-export.csv": (american_shop, "USD", {"zone": "America/New_York"}),
    "marks.csv": (british_marks, "GBP", {}),
    "tabs.tsv": (tabs, "GBP", {"columns.amount": "Gross", "words.status.Complete": "paid"}),
    "book.xlsx": (
        book,
        "CHF",
        {"columns.order_no": "Number", "words.status.OPEN": "pending", "zone": "Europe/Zurich"},
    ),
    "orders.jsonl": (json_lines, "EUR", {"columns.order_no": "id", "units": "minor"}),
}
"""Name -> who writes it, its currency, all that is asked with a true answer."""


def _proposed(folder: Path, name: str, answers: dict[str, str]) -> Proposed:
    path = folder / name
    path.write_bytes(EXPORTS[name][0]())
    return propose_layout(
        [path], kind="orders", rules=Rules(), account=(MERCHANT, ACCOUNT), answers=answers
    )


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_to_the_cent_once_it_is_answered(name: str, tmp_path: Path) -> None:
    """Nothing but what two readings fit is asked, and then every row counts with its amount."""
    _, currency, answers = EXPORTS[name]

    asked = _proposed(tmp_path, name, {})
    assert set(asked.proposal.questions) == set(answers)
    answered = _proposed(tmp_path, name, answers)

    assert answered.usable, (answered.checked, answered.proposal.questions)
    assert answered.layout is not None
    table = read_table(
        tmp_path / name,
        kind=ORDER_FILE.kind,
        rules=Rules(),
        layout=answered.layout,
        schema=ORDER_FILE,
    )
    assert len(table.frame) == ORDERS
    assert set(table.frame["currency"]) == {currency}
    assert int(table.frame["amount"].sum()) == SUM


def test_a_question_names_the_columns_that_could_be_it(tmp_path: Path) -> None:
    """Whoever answers need not open the file: what holds other things, or repeats, is left out."""
    asked = _proposed(tmp_path, "book.xlsx", {}).proposal.questions
    assert asked["columns.order_no"].startswith("which column is it: 'Number' or 'Reference'?")
