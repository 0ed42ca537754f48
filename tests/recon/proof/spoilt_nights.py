"""Nights that are compared in parts and as a whole, and what must be the same of both."""

import random
from dataclasses import replace
from datetime import timedelta

import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import VANISHED_COLUMNS, Basis, Previous, Sources
from recon.model.terms import Reject
from recon.proof.proven import compared
from tests.injected import RULES, planted
from tests.injected.injected_files import AS_OF

FRAMES = (
    *("breaks", "effects", "matches", "pending", "unverified"),
    *("sides", "movements", "journals"),
)
VALUES = (
    *("verdict", "digest", "scope_of_assurance", "not_covered"),
    "unmapped_codes",
)
RULES_OF_NIGHTS = Rules.of(RULES, source="nights")


def assert_same(one: Reconciliation, other: Reconciliation) -> None:
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), obj=name)
    for name in VALUES:
        assert getattr(one, name) == getattr(other, name), name


def with_open_sets(night: Sources) -> Sources:
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
    night_before = compared(before, basis=Basis(RULES_OF_NIGHTS, as_of))
    charged = told.gateway[["merchant_id", "account_id", "order_no"]].iloc[:2]
    return told, Previous(as_of, night_before.breaks, charged, vanished=gone)
