"""Which files of a night are written anew to be compared, and what they say."""

from typing import Any, NamedTuple

from recon.matching.frames.sources import Sources
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.kept_sources import with_rows
from recon.steps.compare.parted_sources import parted_sources
from recon.steps.compare.sealed_results import begin_compared
from recon.steps.compare.stretches import rows_of_stretch, stretches
from recon.steps.ground.kept_books import entries_of_run, write_books
from recon.steps.ground.night_folder import bind
from recon.steps.ground.sealed_night import sealed_night
from recon.steps.night import whole_night as night
from recon.store.nights import runs
from recon.store.nights.runs import Run
from tests.recon.steps.compare.test_parted_inputs import (
    NEW,
    books,
    opened_and_settled,
    plain,
    priced,
)
from tests.recon.steps.conftest import UP_TO_COMPARE, Merchant
from tests.recon.steps.files.test_settlement_files import line, send


def newest_run(merchant: Merchant) -> Run:
    """The run that was begun last."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        (run,) = runs.newest_of_accounts(connection)
    return run


def test_orders_that_came_since_are_written_anew(merchant: Merchant) -> None:
    """What was sealed before money is not taken for what is compared: the table is made."""
    plain(merchant)
    newer = {"amount": "2.00", "updated_at": "2026-11-20T20:00:00Z"}
    paid = merchant.payments("captured")
    steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        night.walk(UP_TO_COMPARE, run_id, environment=environment, **steps)
        merchant.drop("later.csv", merchant.order(paid[4], **newer), merchant.order(paid[10]))
        night.walk(["ingest"], run_id, environment=environment, **steps)

    assert "orders.parquet" in selected(merchant).written


def test_tariffs_that_no_file_tells_any_more_are_not_those_of_before(merchant: Merchant) -> None:
    """A newer version of a file leaves brands out: those that were sealed are of other lines."""
    priced(merchant)
    steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        night.walk(UP_TO_COMPARE, run_id, environment=environment, **steps)
        paid = merchant.payments("captured")[7]
        for name in ("S0.csv", "S2.csv"):
            send(merchant, name, line(paid, batch_id=name))
        night.walk(["ingest"], run_id, environment=environment, **steps)

    again = selected(merchant)
    assert {"settlement.parquet", "tariffs.parquet"} <= again.written
    assert again.sources.settlement is not None
    assert not again.sources.settlement["brand"].any()
    with merchant.environment() as environment, environment.store.reading() as connection:
        held = sealed_night(connection, newest_run(merchant), environment=environment)
    assert held.rows("tariffs") == 3


def test_books_that_were_read_anew_are_written_anew(merchant: Merchant) -> None:
    """The inputs name those of before, which are whole as well."""
    plain(merchant)
    books(merchant, ("L1", merchant.payments("captured")[0].order_no, "fee", "0.10", NEW))
    merchant.move_money()
    run = newest_run(merchant)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            entries = entries_of_run(connection, run, environment=environment)
        fewer = write_books(run, entries=entries.slice(1), environment=environment)
        with environment.store.writing() as connection:
            bind(connection, run, sealed=[fewer], environment=environment)

    assert "ledger.parquet" in selected(merchant).written


def test_books_that_are_compared_whole_are_not_made_once_more(merchant: Merchant) -> None:
    """Nor are orders and keys that nothing was added to since they were sealed."""
    plain(merchant)
    merchant.move_money()

    assert selected(merchant).unchanged == {"orders", "universe", "ledger"}


def test_payments_from_before_the_opening_are_in_no_file(merchant: Merchant) -> None:
    """What was settled of them and booked of that stays, of no payment; the rest is a sum."""
    opened_and_settled(merchant)
    merchant.move_money()
    found = selected(merchant).sources
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
    assert sorted(words) == [("earlier", "", ""), ("earlier", "", "visa"), ("reserve", "", "visa")]
    left = {(one.what, one.currency): one.count for one in found.opening_balance}
    assert left == {("ledger entries", "EUR"): 7, ("payments", "EUR"): 4, ("payments", "JPY"): 1}


class Selected(NamedTuple):
    """What a run compares."""

    sources: Sources
    written: set[str]
    """Files that do not say what was sealed before money."""
    unchanged: frozenset[str]


def selected(merchant: Merchant) -> Selected:
    """Choose it anew for the newest run; it can be read before its manifest is written."""
    run = newest_run(merchant)
    with merchant.environment() as environment:
        inputs = frozen_inputs(run, environment=environment)
        parted = parted_sources(run, inputs=inputs, environment=environment)
        begun = begin_compared(
            run,
            tables=parted.tables,
            absent=parted.parted.absent,
            predecessor=inputs.previous_run_id,
            environment=environment,
        )
        sources = with_rows(parted.small, night=begun.night)
        parts = [
            rows_of_stretch(begun.night, each) for each in stretches(begun.night, orders_per_part=2)
        ]
    assert sum(len(part.orders) for part in parts) == len(sources.orders)
    return Selected(sources, {entry.name for entry in begun.begun.entries}, parted.unchanged)
