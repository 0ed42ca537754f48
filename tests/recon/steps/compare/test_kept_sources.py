from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from recon.matching.frames import same_words, sorting
from recon.model.words import DOUBTFUL_STATES
from recon.steps.compare.kept_sources import kept_sources, small_of_night, with_rows
from recon.steps.ground.night_folder import sealed_night
from recon.steps.night import whole_night as night
from recon.store.nights import runs
from tests.recon.steps.conftest import Merchant


def test_a_doubt_keeps_when_answers_first_showed_it(merchant: Merchant) -> None:
    """Its grace runs from there, however many nights show it again; nothing else keeps it."""
    paid = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    part = {"status": "paid", "action": "capture", "action_amount": "1.00"}
    merchant.drop("orders.csv", merchant.order(paid, **part))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    shown = []
    for day in ("2026-11-20", "2026-11-21", "2026-11-22"):
        merchant.night(date=day)
        merchant.fault()
        merchant.wait(hours=24)
        with merchant.environment() as environment, environment.store.reading() as connection:
            run = runs.get(connection, runs.finished(connection)[-1].run_id)
            kept = kept_sources(connection, run, environment=environment)
        assert kept is not None
        assert kept[0].instructions is not None
        shown.append(kept[0].instructions.iloc[0])

    assert [one["state"] in DOUBTFUL_STATES for one in shown] == [True] * 3
    assert shown[0]["outcome_at"] > shown[0]["sent_at"]
    assert {one["outcome_at"] for one in shown} == {shown[0]["outcome_at"]}


def test_of_a_run_that_sealed_nothing_there_is_nothing(merchant: Merchant) -> None:
    """Whoever asks then reads the tables, or says that it cannot be rebuilt."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
        environment.store.reading() as connection,
    ):
        run = runs.get(connection, run_id)
        assert kept_sources(connection, run, environment=environment) is None


def test_ids_that_orders_answers_and_questions_share_are_held_once(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an order that was captured was asked about again, after all the others."""
    for module in (same_words, sorting):
        monkeypatch.setattr(module, "PIECE_ROWS", 2)
    first, *others = merchant.payments("authorised")[:3]
    rows = [merchant.order(first, action="capture", request_id="C1"), *map(merchant.order, others)]
    merchant.drop("orders.csv", *rows)
    merchant.night()
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, runs.finished(connection)[-1].run_id)
        sealed = sealed_night(connection, run, environment=environment)
        small, _ = small_of_night(sealed)
        read = with_rows(small, night=sealed)

    assert read.universe is not None
    numbers = [frame["order_no"] for frame in (read.orders, read.gateway, read.universe)]
    assert len(read.gateway) == len(rows)
    assert numbers[1].tolist() == sorted(numbers[1])
    assert len({places_of(column) for column in numbers}) == 1


def places_of(column: "pd.Series[Any]") -> tuple[int, ...]:
    """Where the texts of a column lie."""
    text: Any = pa.array(column)
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    return tuple(chunk.buffers()[2].address for chunk in chunks)
