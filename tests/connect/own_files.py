"""Three exports of one shop, as its programs write them: nothing in them is written for recon.

What is true of them stands here: 24 orders, of which one is unknown to the gateway, one was taken
with a euro too much, and one is not in the ledger.
"""

import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

ORDERS = 24
BEGAN = datetime(2026, 11, 20, 8, 7)  # noqa: DTZ001 - a wall clock in Berlin, as the shop writes it
UNKNOWN, TOO_MUCH, NOT_BOOKED = 5, 7, 9
"""Numbers of the orders with a difference."""
CODES = {
    f"GF-{UNKNOWN}": "BOOKED_NOT_AT_GATEWAY",
    f"GF-{TOO_MUCH}": "AMOUNT_OVER",
    f"GF-{NOT_BOOKED}": "MISSING_IN_LEDGER",
}
"""Order -> the break that must come out; there is no other."""


class _Sale(NamedTuple):
    number: int
    at: datetime
    units: int


def _sales() -> Iterator[_Sale]:
    for number in range(ORDERS):
        at = BEGAN + timedelta(minutes=29 * number)
        yield _Sale(number, at, 990 + number * 70_003 % 450_000)


def _german(units: int) -> str:
    whole, cents = divmod(units, 100)
    return f"{whole:,}".replace(",", ".") + f",{cents:02}"


def shop() -> bytes:
    """cp1252, title lines, decimal commas, local times, a sum at the end without its line end."""
    lines = [
        "Bestellexport Gartenfreund Müller GmbH",
        "Erstellt am: 21.11.2026 07:12 Uhr;;;;;",
        "",
        "Bestellnummer;Bestelldatum;Kunde;Bestellwert (EUR);Versandkosten;Zahlstatus",
    ]
    for sale in _sales():
        cells = (f"GF-{sale.number}", f"{sale.at:%d.%m.%Y %H:%M}", "Groß", _german(sale.units))
        lines.append(";".join((*cells, "4,90", "Bezahlt")))
    total = sum(sale.units for sale in _sales())
    return "\r\n".join([*lines, f"Summe;;;{_german(total)};;"]).encode("cp1252")


def portal() -> bytes:
    """The gateway's own list of payments: commas, UTC, words for a state."""
    lines = ["Transaction ID,Merchant Reference,Created,Amount,Currency,Status,Payment Method"]
    for sale in _sales():
        if sale.number == UNKNOWN:
            continue
        units = sale.units + 100 * (sale.number == TOO_MUCH)
        at = sale.at - timedelta(hours=1)
        cells = (f"PSP{sale.number:06}", f"GF-{sale.number}", f"{at:%Y-%m-%d %H:%M:%S}")
        lines.append(",".join((*cells, f"{units / 100:.2f}", "EUR", "Captured", "visa")))
    return ("\n".join(lines) + "\n").encode()


def ledger() -> bytes:
    """What the bookkeeper's program exports: semicolons, days without a clock."""
    lines = ["Buchungsnr;Buchungsdatum;Belegfeld 1;Vorgang;Umsatz;WKZ"]
    for sale in _sales():
        if sale.number != NOT_BOOKED:
            cells = (f"B{sale.number}", f"{sale.at:%d.%m.%Y}", f"GF-{sale.number}", "Zahlung")
            lines.append(";".join((*cells, _german(sale.units), "EUR")))
    return ("\n".join(lines) + "\n").encode()


def codes_of(breaks: Path) -> dict[str, str]:
    """Order -> its break, of a file of breaks."""
    with breaks.open(encoding="utf-8", newline="") as file:
        return {row["order_no"]: row["code"] for row in csv.DictReader(file)}


def written_into(folder: Path) -> None:
    """The three files."""
    for name, content in (("shop.csv", shop()), ("portal.csv", portal()), ("books.csv", ledger())):
        (folder / name).write_bytes(content)
