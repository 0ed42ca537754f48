"""What is sealed table by table is, byte for byte, what all sources at once would give."""

import csv
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Rows
from recon.instructions.queries import KeyAnswers
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.terms import KeyAnswer, SourceFile, SourceKind
from recon.model.uptime import NEVER_READ
from recon.proof.night_tables import SETTLEMENT, TARIFFS
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.sealed_inputs import seal_inputs, write_compared
from recon.steps.compare.selection import RunReading
from recon.steps.compare.stored_sources import (
    cut_of_night,
    rows_of_range,
    small_of_night,
    sources_of_night,
)
from recon.steps.night import whole_night as night
from recon.steps.runtime import gateway_answers
from recon.steps.runtime.gateway_answers import Moment, reply_rows
from recon.steps.runtime.night_folder import StoredLedger, record_sealed, storages_of, write_ledger
from recon.steps.runtime.window import NOTHING_BEFORE
from recon.store.nights import runs
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.settlement_rows import NamedPayments
from tests.recon.steps.conftest import ORDER_HEADER
from tests.recon.steps.files.test_settlement_files import declare, line, place, send
from tests.recon.steps.large_nights import AT, peak_bytes, peak_bytes_of_objects
from tests.recon.store.stored_files import keep_lines

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
BYTES_AN_ORDER = 350
"""Of Arrow: the rows of the order file, unsorted and sorted, beside what the night asked for. All
sources at once hold 460."""


def plain(merchant):
    """Orders of two files, one of them sent anew; books of the window."""
    paid = merchant.payments("captured")
    merchant.drop("first.csv", *map(merchant.order, paid[5:1:-1]))
    merchant.drop("second.csv", merchant.order(paid[0]), merchant.order(paid[3], amount="1.00"))


def older(merchant):
    """Orders and entries from before the window, some of which are asked about."""
    plain(merchant)
    first, second = merchant.payments("captured")[6:8]
    merchant.drop("old.csv", merchant.order(first, ordered_at=OLD))
    with_ledger(
        merchant,
        ("L1", second.order_no, "capture", second.amount, OLD),
        ("L2", first.order_no, "capture", first.amount, NEW),
        ("L3", first.order_no, "fee", "0.10", OLD),
        ("L4", "nobody", "capture", "3.00", OLD),
        ("L5", merchant.payments("captured")[0].order_no, "adjustment", "0.01", OLD),
    )


def settled(merchant):
    """Lines of the gateway, and payouts of the ledger: named, of the window, of a batch before."""
    place(merchant).mkdir()
    declare(merchant)
    older(merchant)
    one = next(each for each in merchant.payments("captured") if each.currency == "EUR")
    blank = {"order_no": "", "transaction_id": "", "currency": "EUR", "gross": "0.00"}
    paid = line(one, entry_type="payout", **blank) | {"net": one.amount}
    send(merchant, "S1.csv", line(one), paid)
    with_ledger(
        merchant,
        ("P1", "S1", "payout", one.amount, OLD),
        ("P2", "", "payout", "77.00", NEW),
        ("P2", "", "capture", "77.00", NEW),
        ("P3", "", "payout", "12.00", "2026-11-19T12:00:00Z"),
    )


def priced(merchant):
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


def opened(merchant):
    """Payments from before the opening date of which nobody knows anything, as booked by hand."""
    older(merchant)
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text().replace("2026-01-01", "2026-11-20"))
    first, second, third = merchant.payments("captured")[9:12]
    with_ledger(
        merchant,
        ("O1", first.order_no, "capture", first.amount, NEW),
        ("O2", second.order_no, "capture", second.amount, NEW),
        ("O3", third.order_no, "fee", "0.10", NEW),
        ("O4", third.order_no, "reserve", "0.20", NEW),
        ("O5", "", "fee", "0.30", NEW),
    )


def opened_and_settled(merchant):
    """The same with lines that name them, and tell what a contract goes by."""
    priced(merchant)
    opened(merchant)
    first, second, third = merchant.payments("captured")[9:12]
    reserve = {"entry_type": "reserve", "brand": "visa"}
    send(
        merchant,
        "S3.csv",
        line(first, brand="visa", batch_id="S3"),
        line(second, brand="visa", batch_id="S3") | {"order_no": ""},
        line(third, batch_id="S3") | reserve,
    )


def with_ledger(merchant, *entries):
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


def test_orders_are_sealed_in_the_room_of_their_file_and_of_nothing_beside(merchant):
    """What four times the orders take more is a part of what all sources at once would take."""
    few, many = (sealed_bytes(merchant, orders=orders) for orders in (20_000, 80_000))
    assert many - few < BYTES_AN_ORDER * 60_000


def sealed_bytes(merchant, *, orders):
    """What Arrow holds at most while a night of so many orders seals what it read."""
    with ingested(merchant, orders=orders) as (run, numbers, environment):
        answered(run, numbers, environment=environment)
        return peak_bytes(lambda: seal_inputs(run, environment=environment))


@contextmanager
def ingested(merchant, *, orders):
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


def drop_many(merchant, numbers):
    """An order file of so many orders, in place of the one before."""
    payment = merchant.payments("captured")[0]
    row = merchant.order(payment)
    with (merchant.inbox / "orders.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=ORDER_HEADER, restval="")
        writer.writeheader()
        writer.writerows({**row, "order_no": number} for number in numbers)


def answered(run, numbers, *, environment):
    """Answers about all of them, as the gateway would give them."""
    gateway_answers.note_queried(run, phase=BASELINE, keys=numbers, environment=environment)
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
    rows = reply_rows(run, KeyAnswers(said, (*payments,)), sent=Moment(AT, NEVER_READ, 0))
    gateway_answers.save(run, rows, environment=environment)


BYTES_A_LINE = 340
"""Of Arrow: both tables as they are written, unsorted, with the column that is sorted."""
OBJECT_BYTES_A_LINE = 20
"""Of Python and numpy: the bytes of their file while it is read; nothing else grows with them."""


def test_lines_take_the_room_of_their_file_and_of_no_frame(merchant):
    """What four times the lines take more; rows of Python stand for a few of them at a time."""
    place(merchant).mkdir()
    declare(merchant)
    of_arrow, of_objects = [], []
    for lines in (20_000, 80_000):
        with ingested(merchant, orders=2) as (run, _, environment):
            many_lines(run, lines=lines, environment=environment)

            def measured(run=run, environment=environment):
                of_arrow.append(peak_bytes(lambda: tables_made(run, environment)))

            of_objects.append(peak_bytes_of_objects(measured))

    assert of_arrow[1] - of_arrow[0] < BYTES_A_LINE * 60_000
    assert of_objects[1] - of_objects[0] < OBJECT_BYTES_A_LINE * 60_000


def tables_made(run, environment):
    """As a night does, one table after the other."""
    inputs = frozen_inputs(run, environment=environment)
    with environment.store.reading() as connection:
        read = RunReading(connection, run, inputs, environment)
        chosen = read.lines(payments=NamedPayments.of(), before=NOTHING_BEFORE)
    assert len(chosen.payout_lines) == 1
    for name in (SETTLEMENT, TARIFFS):
        assert Rows.of(chosen.table(name), schema=SCHEMAS[name]).rows.num_rows >= 20_000


def many_lines(run, *, lines, environment):
    """So many lines of as many orders, all with a brand, and what they came to."""
    plain = {"batch_id": "B1", "merchant_id": run.merchant_id, "account_id": run.account_id}
    plain |= {"settled_on": "2026-11-20", "entry_type": "capture", "currency": "EUR"}
    amounts = {"gross": 100, "fee": 1, "net": 99, "brand": "visa"}
    rows: list[dict[str, object]] = [
        {**plain, **amounts, "order_no": f"{lines}-{at:020}", "transaction_id": f"{at:020}"}
        for at in range(lines)
    ]
    rows.append({**plain, "entry_type": "payout", "gross": 0, "fee": 0, "net": 99 * lines})
    frame = frame_of(
        ({**row, "line": at} for at, row in enumerate(rows)), columns=SETTLEMENT_COLUMNS
    )
    name = "settlement/S1"
    size = len(rows)
    source = SourceFile(SourceKind.SETTLEMENT, name, str(lines), 9, size, size, 0, 0)
    storages = storages_of(environment)
    keep_lines(environment.store, run, frame, source=source, storages=storages)


def newest_run(merchant):
    """The run that was begun last."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        (run,) = runs.newest_of_accounts(connection)
    return run


def test_what_came_since_money_moved_is_of_the_next_night(merchant):
    """Neither orders nor books that are read meanwhile change what was sealed and is compared."""
    plain(merchant)
    with_ledger(merchant, ("L1", merchant.payments("captured")[0].order_no, "fee", "0.10", NEW))
    merchant.move_money()
    sealed = selected(merchant)
    run = newest_run(merchant)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            read = StoredLedger(connection, run, environment)
            schema = SCHEMAS["ledger"].columns
            whole = pa.concat_tables(read.batches(schema.names)).cast(schema)
        fewer = write_ledger(run, entries=whole.slice(1), environment=environment)
        with environment.store.writing() as connection:
            record_sealed(connection, run, sealed=[fewer], environment=environment)
        paid = merchant.payments("captured")
        newer = {"amount": "2.00", "updated_at": "2026-11-20T20:00:00Z"}
        merchant.drop("later.csv", merchant.order(paid[4], **newer), merchant.order(paid[10]))
        steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
        night.walk(["ingest"], run.run_id, environment=environment, **steps)

    again = selected(merchant)
    for frame in ("orders", "ledger"):
        pd.testing.assert_frame_equal(getattr(again, frame), getattr(sealed, frame))


def test_payments_from_before_the_opening_are_in_no_file(merchant):
    """What was settled of them and booked of that stays, of no payment; the rest is a sum."""
    opened_and_settled(merchant)
    merchant.move_money()
    found = selected(merchant)
    assert found.ledger is not None
    assert found.settlement is not None
    assert found.universe is not None
    names = [each.order_no for each in merchant.payments("captured")[9:12]]

    for frame in (found.orders, found.gateway, found.universe, found.settlement):
        assert not frame["order_no"].isin(names).any()
    kept = found.ledger.set_index("entry_id")["order_no"]
    assert {each: kept[each] for each in kept.index if each[0] == "O"} == {
        "O3": "",
        "O4": names[2],
        "O5": "",
    }
    lines = found.settlement[found.settlement["batch_id"].eq("S3")]
    words = lines[["entry_type", "transaction_id", "brand"]].itertuples(index=False, name=None)
    assert sorted(words) == [*[("earlier", "", "visa")] * 2, ("reserve", "", "visa")]
    left = {(one.what, one.currency): one.count for one in found.opening_balance}
    assert left == {("ledger entries", "EUR"): 7, ("payments", "EUR"): 4, ("payments", "JPY"): 1}


def selected(merchant):
    """What the newest run compares, written anew and in parts as well."""
    with merchant.environment() as environment:
        written = write_compared(newest_run(merchant), environment=environment)
        sources, _ = sources_of_night(written.night)
        small, previous = small_of_night(written.night)
        cut = cut_of_night(written.night, small=small, previous=previous, rows_per_bucket=8)
        parts = [rows_of_range(written.night, each, small=small) for each in cut.ranges]
    assert sum(len(part.orders) for part in parts) == len(sources.orders)
    return sources
