"""What is sealed table by table is, byte for byte, what all sources at once would give."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recon.model.uptime import NEVER_READ
from recon.model.words import KeyAnswer
from recon.steps.compare.sealed_inputs import seal_inputs
from recon.steps.ground import kept_answers
from recon.steps.ground.answer_rows import Moment, Replies, reply_rows
from recon.steps.ground.environment import Environment
from recon.steps.night import whole_night as night
from recon.store.nights import runs
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import Run
from tests.recon.steps.conftest import ORDER_HEADER, Merchant
from tests.recon.steps.files.test_settlement_files import declare, line, place, send
from tests.recon.steps.large_nights import AT, peak_bytes

OLD, NEW = "2019-01-05T10:00:00Z", "2026-11-20T12:00:00Z"
MONTHS = """
rounding = "half_up"
volumes_from = 2018-01-01
[[lines]]
name = "visa"
from = 2018-01-01
type = "capture"
currency = "EUR"
brand = "visa"
tiers_by = "month"
tiers_of = "whole"
tiers = [{ up_to_minor_units = 10000, basis_points = 140 }, { basis_points = 120 }]
"""
BYTES_AN_ORDER = 340
"""Of Arrow: the rows of the order file, unsorted and sorted, beside what the night asked for. All
sources at once hold 460."""


def plain(merchant: Merchant) -> None:
    """Orders of two files, one of them sent anew; books of the window."""
    paid = merchant.payments("captured")
    merchant.drop("first.csv", *map(merchant.order, paid[5:1:-1]))
    merchant.drop("second.csv", merchant.order(paid[0]), merchant.order(paid[3], amount="1.00"))


def older(merchant: Merchant) -> None:
    """Orders and entries from before the window, some of which are asked about."""
    plain(merchant)
    first, second = merchant.payments("captured")[6:8]
    merchant.drop("old.csv", merchant.order(first, ordered_at=OLD))
    books(
        merchant,
        ("L1", second.order_no, "capture", second.amount, OLD),
        ("L2", first.order_no, "capture", first.amount, NEW),
        ("L3", first.order_no, "fee", "0.10", OLD),
        ("L4", "nobody", "capture", "3.00", OLD),
        ("L5", merchant.payments("captured")[0].order_no, "adjustment", "0.01", OLD),
    )


def settled(merchant: Merchant) -> None:
    """Lines of the gateway, and pay-outs of the books: named, of the window, of a batch before."""
    place(merchant).mkdir()
    declare(merchant)
    older(merchant)
    one = next(each for each in merchant.payments("captured") if each.currency == "EUR")
    blank = {"order_no": "", "transaction_id": "", "currency": "EUR", "gross": "0.00"}
    paid = line(one, entry_type="payout", **blank) | {"net": one.amount}
    send(merchant, "S1.csv", line(one), paid)
    books(
        merchant,
        ("P1", "S1", "payout", one.amount, OLD),
        ("P2", "", "payout", "77.00", NEW),
        ("P2", "", "capture", "77.00", NEW),
        ("P3", "", "payout", "12.00", "2026-11-19T12:00:00Z"),
    )


def priced(merchant: Merchant) -> None:
    """Lines that tell what a contract with months goes by, some of them from before the window."""
    settled(merchant)
    (merchant.folder / "config" / "fees.toml").write_text(MONTHS)
    first, second, third = merchant.payments("captured")[5:8]
    old = {"settled_on": "2019-02-01", "batch_id": "S0"}
    unknown = {"order_no": "nobody", "transaction_id": "", **old}
    paid = {"order_no": "", "transaction_id": "", "entry_type": "payout", **old}
    send(
        merchant,
        "S0.csv",
        line(first, brand="visa", **old),
        line(second, brand="visa", region="EEA", **old | {"order_no": ""}),
        line(third, **unknown),
        line(third, brand="visa", **unknown | {"entry_type": "chargeback"}),
        line(third, **paid),
    )
    send(merchant, "S2.csv", line(third, brand="visa", batch_id="S2"))


def opened(merchant: Merchant) -> None:
    """Payments from before the opening date of which nobody knows anything, as booked by hand."""
    older(merchant)
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text().replace("2026-01-01", "2026-11-20"))
    first, second, third = merchant.payments("captured")[9:12]
    books(
        merchant,
        ("O1", first.order_no, "capture", first.amount, NEW),
        ("O2", second.order_no, "capture", second.amount, NEW),
        ("O3", third.order_no, "fee", "0.10", NEW),
        ("O4", third.order_no, "reserve", "0.20", NEW),
        ("O5", "", "fee", "0.30", NEW),
    )


def opened_and_settled(merchant: Merchant) -> None:
    """The same with lines that name them, and tell what a contract goes by."""
    priced(merchant)
    opened(merchant)
    first, second, third = merchant.payments("captured")[9:12]
    reserve = {"entry_type": "reserve", "brand": "visa"}
    send(
        merchant,
        "S3.csv",
        line(first, brand="visa", fee="0.10", batch_id="S3"),
        line(second, brand="visa", batch_id="S3") | {"order_no": ""},
        line(third, batch_id="S3") | reserve,
    )


def books(merchant: Merchant, *entries: tuple[str, str, str, str, str]) -> None:
    """Add entries (number, order, type, amount, instant) and one of another account."""
    path = merchant.folder / "ledger.csv"
    names = path.read_text().splitlines()[0].split(",")
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, restval="", extrasaction="ignore")
        for number, order_no, kind, amount, at in (*entries, ("X", "other", "fee", "1.00", NEW)):
            cells = {"entry_id": number, "order_no": order_no, "entry_type": kind}
            cells |= {"amount": amount, "booked_at": at, "currency": "EUR"}
            account = "100042001" if number != "X" else "100042002"
            writer.writerow({**cells, "merchant_id": "100042", "account_id": account})


def test_orders_are_sealed_in_the_room_of_their_file_and_of_nothing_beside(
    merchant: Merchant,
) -> None:
    """What four times the orders take more is a part of what all sources at once would take."""
    few, many = (sealed_bytes(merchant, orders=orders) for orders in (20_000, 80_000))
    assert many - few < BYTES_AN_ORDER * 60_000


def sealed_bytes(merchant: Merchant, *, orders: int) -> int:
    """What Arrow holds at most while a night of so many orders seals what it read."""
    with ingested(merchant, orders=orders) as (run, numbers, environment):
        answered(run, numbers, environment=environment)
        return peak_bytes(lambda: seal_inputs(run, environment=environment))


@contextmanager
def ingested(merchant: Merchant, *, orders: int) -> Iterator[tuple[Run, list[str], Environment]]:
    """A night of so many orders that came in one file, after its first step."""
    numbers = [f"B{orders}-{number:015}" for number in range(orders, 0, -1)]
    drop_many(merchant, numbers)
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
        night.walk(["ingest"], run_id, environment=environment, **steps)
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        yield run, numbers, environment


def drop_many(merchant: Merchant, numbers: list[str]) -> None:
    """An order file of so many orders, in place of the one before."""
    payment = merchant.payments("captured")[0]
    row = merchant.order(payment)
    with (merchant.inbox / "orders.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=ORDER_HEADER, restval="")
        writer.writeheader()
        writer.writerows({**row, "order_no": number} for number in numbers)


def answered(run: Run, numbers: list[str], *, environment: Environment) -> None:
    """Answers about all of them, as the gateway would give them."""
    kept_answers.note_asked(run, phase=BASELINE, keys=numbers, environment=environment)
    payments = [
        {
            "order_no": number,
            "transaction_id": f"T{number}",
            "currency": "EUR",
            "amount": 100,
            "payment_status": "2000",
            "queried_at": AT,
            "detail": "{}",
        }
        for number in numbers
    ]
    said = dict.fromkeys(numbers, (KeyAnswer.FOUND, ""))
    replies = Replies(BASELINE, run.account_id, said, payments, Moment(AT, NEVER_READ, 0))
    kept_answers.keep(run, reply_rows(run, replies), environment=environment)
