"""Nights whose sets are judged by themselves, and all beside each other: the same result."""

import os
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.calm import calm_sets
from recon.matching.frames import same_words
from recon.matching.frames.sources import VANISHED_COLUMNS, Previous, Sources
from recon.model.words import Reject
from recon.proof.control_totals import Proof
from recon.proof.engine import concluded, prove
from tests.planted import RULES, planted
from tests.planted.all_classified import prove_all_classified
from tests.planted.planted_files import AS_OF
from tests.recon.matching.turned import turned

FRAMES = (
    *("breaks", "effects", "matches", "pending", "unverified"),
    *("sides", "movements", "journals"),
)
VALUES = (
    *("verdict", "digest", "control_totals", "scope_of_assurance", "not_covered"),
    "unmapped_codes",
)
RULES_OF_NIGHTS = Rules.of(RULES, source="nights")
SEEDS = int(os.environ.get("CALM_SEEDS", "2"))
"""Nights whose rows are spoilt at random; `make test-truths` plays more."""


@pytest.fixture(autouse=True)
def small_nights_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights of a test are judged in parts of few sets."""
    monkeypatch.setattr(calm_sets, "SETS_MIN", 1)
    monkeypatch.setattr(calm_sets, "SETS_PER_PART", 7)


def both_ways(sources: Sources, *, rules: Rules, previous: Previous | None) -> tuple[Proof, Proof]:
    """The night with calm sets set aside, and all of it classified."""
    told = {"rules": rules, "as_of": AS_OF, "previous": previous}
    return prove(sources, **told), prove_all_classified(sources, **told)


def assert_same(one: Reconciliation, other: Reconciliation) -> None:
    """Nothing in the two results differs."""
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), obj=name)
    for name in VALUES:
        assert getattr(one, name) == getattr(other, name), name


def with_open_sets(night: Sources) -> Sources:
    """The night, every third order only authorised on both sides, and not booked."""
    names = night.orders["order_no"].iloc[::3].tolist()
    frames = {}
    for name, column, word in (
        ("orders", "status", "authorised"),
        ("gateway", "payment_status", "2000"),
    ):
        frame = getattr(night, name)
        frames[name] = frame.assign(
            **{column: frame[column].where(~frame["order_no"].isin(names), word)}
        )
    for name in ("ledger", "settlement"):
        if (moved := getattr(night, name)) is not None:
            frames[name] = moved[~moved["order_no"].isin(names)].reset_index(drop=True)
    return replace(night, **frames)


@pytest.mark.parametrize(
    ("legs", "per_part"), [("three", 1), ("three", 1_000), ("settled", 7), ("without a ledger", 7)]
)
def test_planted_nights_come_to_the_same(
    legs: str, per_part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All codes among agreeing and open sets: the same result, and few sets were classified."""
    monkeypatch.setattr(calm_sets, "SETS_PER_PART", per_part)
    night = with_open_sets(planted(size=120, broken=60, settled=legs == "settled").sources)
    if legs == "without a ledger":
        night = replace(night, ledger=None)

    fast, slow = both_ways(night, rules=RULES_OF_NIGHTS, previous=None)

    assert len(fast.aside.calm.sets) >= 50
    assert len(slow.aside.calm.sets) == 0
    assert_same(concluded(fast, as_of=AS_OF), concluded(slow, as_of=AS_OF))


SPOILT: dict[str, list[tuple[str, object]]] = {
    "orders": [
        *(("amount", 777), ("status", "refunded"), ("status", "authorised"), ("currency", "JPY")),
        *(("order_no", "N3"), ("account_id", "2"), ("transaction_id", "N3")),
        ("ordered_at", pd.Timestamp("2026-11-20 20:00", tz="UTC")),
    ],
    "gateway": [
        *(("amount", 777), ("payment_status", "2000"), ("payment_status", "77"), ("order_no", "")),
        *(("order_no", "N3"), ("account_id", "2"), ("captured_amount", 3), ("refunded_amount", 5)),
        *(("authorised_amount", 2), ("reference_no", "R1"), ("answer", "failed")),
        ("transaction_date", pd.Timestamp("2026-11-20 20:00", tz="UTC")),
    ],
    "ledger": [
        *(("amount", 777), ("order_no", ""), ("order_no", "N3"), ("reference_no", "R1")),
        *(("entry_type", "refund"), ("entry_type", "fee"), ("entry_type", "write_off")),
        *(("entry_id", "N3"), ("transaction_id", "N3"), ("transaction_id", "TN4")),
        *(("account_id", "2"), ("currency", "JPY"), ("transaction_amount", 777)),
    ],
    "instructions": [("order_no", ""), ("order_no", "N4"), ("transaction_id", "TN4")],
}


def random_night(seed: int) -> tuple[Sources, Previous | None]:
    """A planted night whose rows were doubled, lost and changed at random, and one before it."""
    generator = random.Random(seed)
    night = planted(size=60, broken=30, settled=generator.random() < 0.5).sources

    def short_names(frame: pd.DataFrame) -> pd.DataFrame:
        numbers = {word: f"N{place}" for place, word in enumerate(sorted(names))}
        return frame.assign(
            order_no=frame["order_no"].map(lambda word: numbers.get(word, word)).astype("str")
        )

    names = {*night.orders["order_no"], *night.gateway["order_no"]}
    frames = {}
    for name, changes in SPOILT.items():
        frame = short_names(getattr(night, name))
        rows = [row for row in range(len(frame)) if generator.random() < 0.97]
        rows += generator.choices(rows, k=6)
        frame = frame.iloc[rows].reset_index(drop=True)
        for column, value in generator.sample(changes, k=3):
            frame.loc[generator.randrange(len(frame)), column] = value
        frames[name] = frame
    if generator.random() < 0.3:
        frames["universe"] = frames["orders"][["merchant_id", "account_id", "order_no"]].iloc[3:]
    if night.settlement is not None:
        frames["settlement"] = short_names(night.settlement)
    key = frames["orders"].iloc[0]
    reject = Reject("orders", "o", 9, "amount", "", "", *key[["merchant_id", "account_id"]], "N7")
    told = replace(night, **frames, rejects=(reject,))
    if generator.random() < 0.5:
        return told, None
    gone = told.ledger.sample(5, random_state=seed)[[*VANISHED_COLUMNS]]
    before = replace(told, gateway=told.gateway.iloc[generator.randrange(9) :], universe=None)
    as_of = AS_OF - timedelta(days=1)
    proof = prove(before, rules=RULES_OF_NIGHTS, as_of=as_of, previous=None)
    charged = told.gateway[["merchant_id", "account_id", "order_no"]].iloc[:2]
    return told, Previous(as_of, proof.frames.breaks, charged, vanished=gone)


def items_of_result(proof: Proof) -> list[dict[str, Any]]:
    """The items of a result, in one order."""
    rows = concluded(proof, as_of=AS_OF).items.to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_nights_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats, lost and changed rows, keyless rows and an earlier night change nothing in it."""
    night, previous = random_night(seed)

    fast, slow = both_ways(night, rules=RULES_OF_NIGHTS, previous=previous)

    assert 0 < len(fast.aside.calm.sets) < 60
    assert_same(concluded(fast, as_of=AS_OF), concluded(slow, as_of=AS_OF))
    monkeypatch.setattr(calm_sets, "SETS_MIN", len(night.orders) + 1)
    one_piece = prove(night, rules=RULES_OF_NIGHTS, as_of=AS_OF, previous=previous)
    assert len(one_piece.aside.calm.sets) == 0
    assert items_of_result(fast) == items_of_result(one_piece)


@pytest.mark.parametrize("seed", range(2))
def test_nights_held_once_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns in pieces that share what they have in common say nothing else, in either order."""
    night, previous = random_night(seed)
    told = {"rules": RULES_OF_NIGHTS, "as_of": AS_OF, "previous": previous}
    plain = concluded(prove(night, **told), as_of=AS_OF)
    monkeypatch.setattr(same_words, "PIECE_ROWS", 7)

    for pieces in (turned(night), turned(turned(night))):
        assert_same(concluded(prove(pieces, **told), as_of=AS_OF), plain)
