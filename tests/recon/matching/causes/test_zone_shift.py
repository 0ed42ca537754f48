"""A zone that is set wrong is told once, by evidence that could have spoken against it."""

from dataclasses import replace
from datetime import UTC

import pytest

from recon.proof.engine import reconcile
from tests.injected import zone_shifted

END = "which moves records at the end of a business date to another one: is its time zone right?"
NOTIFIED = {
    ("ledger", 8.0): f"The times of the ledger in account 1 are 8 hours ahead of those "
    f"of the gateway, {END}",
    ("ledger", 1.0): f"The times of the ledger in account 1 are 1 hour ahead of those "
    f"of the gateway, {END}",
    ("orders", -5.5): f"The times of the orders in account 1 are 5.5 hours behind those "
    f"of the gateway, {END}",
    ("orders", 5.75): f"The times of the orders in account 1 are 5.75 hours ahead of those "
    f"of the gateway, {END}",
    ("gateway", 1.0): f"The times of the gateway in account 1 are 1 hour ahead of those "
    f"of the orders and the ledger, {END}",
}


def causes(files, *, sources=None):
    """How many breaks have each cause."""
    told = reconcile(sources or files.sources, rules=files.rules, as_of=files.as_of).breaks["cause"]
    counts = told.value_counts()
    return {str(cause): int(count) for cause, count in counts.items()}


@pytest.mark.parametrize(("source", "hours"), NOTIFIED)
def test_a_shift_is_one_cause_of_all_its_breaks(source, hours):
    """Whichever source is off, in whichever direction: one line over every planted break."""
    files = zone_shifted(source, hours=hours)

    breaks = reconcile(files.sources, rules=files.rules, as_of=files.as_of).breaks

    effects = [breaks[name].fillna(0).astype(int) for name in ("effect_orders", "effect_ledger")]
    found = sorted(zip(breaks["code"], breaks["order_no"], *effects, strict=True))
    assert found == sorted(zip(*files.key.to_dict("list").values(), strict=True))
    assert {*breaks["cause"]} == {NOTIFIED[source, hours]}


def without(frame, *, lost, by):
    """A frame without the rows whose time the caller names."""
    kept = [not lost(at) for at in frame[by].dt.tz_convert(UTC)]
    return frame[kept].reset_index(drop=True)


def test_records_lost_at_noon_are_no_shift():
    """Beside a proven shift, breaks that it does not move to another date keep their own look."""
    files = zone_shifted("ledger", hours=8)
    ledger = files.sources.ledger
    assert ledger is not None
    lost = replace(
        files.sources,
        ledger=without(
            ledger, by="booked_at", lost=lambda at: (at.day, at.hour) in ((2, 12), (3, 12))
        ),
    )

    assert causes(files, sources=lost) == {NOTIFIED["ledger", 8.0]: len(files.key), "": 8}


def test_a_delay_is_no_shift():
    """Half an hour between two sources is no zone, whatever is lost at the end of a date."""
    files = zone_shifted("ledger", hours=0.5)

    assert causes(files) == {"": 4}


def test_an_end_of_a_date_with_both_sides_is_no_shift():
    """Where most records around midnight have their other side, the shift did not lose the rest."""
    files = zone_shifted("ledger", hours=8)
    ledger = files.sources.ledger
    assert ledger is not None
    lost = replace(
        files.sources,
        ledger=without(
            ledger, by="booked_at", lost=lambda at: (at.day, at.hour, at.minute > 20) == (2, 3, 1)
        ),
    )

    assert causes(files, sources=lost) == {NOTIFIED["ledger", 8.0]: len(files.key), "": 3}


@pytest.mark.parametrize(
    ("left", "told"), [(3, NOTIFIED["ledger", 1.0]), (2, "")], ids=["three", "two"]
)
def test_three_breaks_are_a_cause_and_two_are_looked_at_one_by_one(left, told):
    """Of the eight that a shift of an hour keeps apart some are there and the others are not."""
    files = zone_shifted("ledger", hours=1)
    gone = {*files.key["name"]} - {*files.key["name"].tail(left)}
    orders, gateway, ledger = (
        frame[~frame["order_no"].isin(gone)].reset_index(drop=True)
        for frame in (files.sources.orders, files.sources.gateway, files.sources.ledger)
        if frame is not None
    )

    sources = replace(files.sources, orders=orders, gateway=gateway, ledger=ledger)
    assert causes(files, sources=sources) == {told: left}
