"""Sets that are set aside: which they are, and that no result is another for it."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.engine import prepared
from recon.matching.exact.aside import set_aside
from recon.matching.exact.exact_search import Leg, keys_of
from recon.matching.frames import same_words
from recon.matching.frames.coding import NO_KEY
from recon.matching.frames.numbering import WholeKeys
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

Change = Callable[[Any], Any]

APART: dict[str, Change] = {
    "payment-of-another-order": lambda c: c.order().payment().entry().payment(
        order_no="B", transaction_id="T1"
    ),
    "amount": lambda c: c.order().payment(amount=9999).entry(),
    "captured-amount": lambda c: c.order().payment(captured_amount=9999).entry(),
    "expected-amount": lambda c: c.order(expected_captured_amount=9999).payment().entry(),
    "booked-amount": lambda c: c.order().payment().entry(amount=9999),
    "currency": lambda c: c.order().payment().entry(currency="USD"),
    "abroad": lambda c: c.order().payment().entry(
        transaction_currency="EUR", transaction_amount=10000
    ),
    "nothing": lambda c: c.order(amount=0).payment(amount=0).entry(amount=0),
    "status": lambda c: c.order("authorised").payment().entry(),
    "state": lambda c: c.order().payment("authorised").entry(),
    "unmapped": lambda c: c.order().payment("unmapped").entry(),
    "refunded": lambda c: c.order().payment(refunded_amount=1).entry(),
    "above-authorised": lambda c: c.order().payment(authorised_amount=9999).entry(),
    "above-what-amount-means": lambda c: c.order().payment(
        amount=9999, captured_amount=10000
    ).entry().ruled(gateway={"amount_means": "authorised"}),
    "kind-of-entry": lambda c: c.order().payment().entry("adjustment"),
    "not-booked": lambda c: c.order().payment().ledger(),
    "order-twice": lambda c: c.order().order().payment().entry(),
    "payment-twice": lambda c: c.order().payment().payment(transaction_id="T2").entry(),
    "answer-twice": lambda c: c.order().payment().answer("failed").entry(),
    "entry-twice": lambda c: c.order().payment().entry().entry("refund", amount=1),
    "entry-id-twice": lambda c: c.order().payment().entry(entry_id="E").entry(
        "fee", entry_id="E", order_no="B"
    ),
    "our-move": lambda c: c.order().payment().entry().move("capture", "withdrawn"),
    "our-move-by-transaction": lambda c: c.order().payment().entry().move(
        "refund", "confirmed", order_no=""
    ),
    "entry-no-longer-there": lambda c: c.order().payment().entry().gone("A1"),
    "rejected-row": lambda c: c.order().payment().entry().reject(),
    "keyless-entry": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="T1"
    ),
    "keyless-by-reference": lambda c: c.order().payment(reference_no="R").entry().entry(
        "refund", order_no="", reference_no="R"
    ),
    "keyless-of-the-same-name": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="A1"
    ),
    "payout-of-the-same-name": lambda c: c.order().payment().entry().payout(request_id="A1"),
    "other-day": lambda c: c.order(ordered_at="2026-09-01T00:00:00Z").payment().entry(),
    "other-reference": lambda c: c.order(transaction_id="T9").payment().entry(),
    "by-hand": lambda c: c.order().payment().entry().move(
        "capture", "withdrawn", order_no="B", transaction_id="TB"
    ).ruled(account={"capture_mode": "manual"}, window={"opening_date": "2026-09-01"}),
    "settled-otherwise": lambda c: c.order().payment().entry().line(gross=9900),
    "not-settled": lambda c: c.order().payment().entry().line(order_no="B"),
    "fee": lambda c: c.order().payment().entry().line(settled_on="2026-09-01", order_no="B").line(
        fee=7
    ).ruled(fees={"EUR": {"basis_points": 0, "fixed_minor_units": 0}}),
}  # fmt: skip

TOGETHER: dict[str, Change] = {
    "plain": lambda c: c.order().payment().entry(),
    "no-ledger-covered": lambda c: c.order().payment(),
    "captured": lambda c: c.order(expected_captured_amount=9999)
    .payment(captured_amount=9999, authorised_amount=10000)
    .entry(amount=9999),
    "beside-a-fee": lambda c: c.order().payment().entry().entry("fee", amount=30),
    "same-reference": lambda c: c.order(transaction_id="T1").payment().entry(),
    "beside-a-keyless-entry": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="T2"
    ),
    "asked": lambda c: c.order().payment().entry().asked("A1"),
    "settled": lambda c: c.order().payment().entry().line(
        settled_on="2026-09-01", order_no="B"
    ).line(),
}  # fmt: skip


def asides(case: Any) -> int:
    """How many sets of a case are set aside."""
    sources = prepared(case.sources(), rules=case.rules)
    return set_aside(sources, rules=case.rules, previous=case.previous, as_of=case.as_of).size


@pytest.mark.parametrize("name", APART)
def test_what_needs_a_judgement_is_left(case: Any, name: str) -> None:
    """A set that differs in one word, or that another row may speak of, is classified."""
    assert asides(APART[name](case)) == 0


@pytest.mark.parametrize("name", TOGETHER)
def test_what_agrees_in_every_leg_is_set_aside(case: Any, name: str) -> None:
    """One row of each leg that say the same need no judgement."""
    assert asides(TOGETHER[name](case)) == 1


def test_a_break_of_last_night_is_judged_again(case: Any, new_case: Callable[[], Any]) -> None:
    """What was a break is classified until it is none, so that its end is told."""
    earlier = new_case().order().payment(amount=9000).entry().run()

    assert asides(case.order().payment().entry().after(earlier)) == 0
    assert asides(new_case().order().payment().entry().after(earlier, charged_back=("A1",))) == 0


def test_the_same_number_in_two_accounts_is_two_keys(case: Any) -> None:
    """Rows of one order number agree only inside their account."""
    case.order().payment(account_id="2").entry()
    case.order(order_no="B").payment(order_no="B", transaction_id="T2").entry(order_no="B")

    assert asides(case) == 1


def both_ways(sources: Sources, *, rules: Rules, previous: Previous | None) -> tuple[Proof, Proof]:
    """The night with exact sets set aside, and all of it classified."""
    told = {"rules": rules, "as_of": AS_OF, "previous": previous}
    return prove(sources, **told), prove_all_classified(sources, **told)


def assert_same(one: Reconciliation, other: Reconciliation) -> None:
    """Nothing in the two results differs."""
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), obj=name)
    for name in VALUES:
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("legs", ["three", "settled", "without a ledger"])
def test_planted_nights_come_to_the_same(legs: str) -> None:
    """All codes among agreeing sets: the same result, and few sets were classified."""
    night = planted(size=240, broken=120, settled=legs == "settled").sources
    if legs == "without a ledger":
        night = replace(night, ledger=None)

    fast, slow = both_ways(night, rules=RULES_OF_NIGHTS, previous=None)

    assert fast.exact.size >= 110
    assert slow.exact.size == 0
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


@pytest.mark.parametrize("seed", range(2))
def test_random_nights_come_to_the_same(seed: int) -> None:
    """Repeats, lost and changed rows, keyless rows and an earlier night change nothing in it."""
    night, previous = random_night(seed)

    fast, slow = both_ways(night, rules=RULES_OF_NIGHTS, previous=previous)

    assert 0 < fast.exact.size < 60
    assert_same(concluded(fast, as_of=AS_OF), concluded(slow, as_of=AS_OF))


@pytest.mark.parametrize("seed", range(2))
def test_nights_held_once_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns in pieces that share what they have in common say nothing else, in either order."""
    night, previous = random_night(seed)
    told = {"rules": RULES_OF_NIGHTS, "as_of": AS_OF, "previous": previous}
    plain = concluded(prove(night, **told), as_of=AS_OF)
    monkeypatch.setattr(same_words, "PIECE_ROWS", 7)

    for pieces in (turned(night), turned(turned(night))):
        assert_same(concluded(prove(pieces, **told), as_of=AS_OF), plain)


def numbers(*sources: str) -> WholeKeys:
    """The keys of orders and payments of these accounts, one row of each."""
    rows = {name: ["M" for _ in sources] for name in ("merchant_id",)}
    frame = pd.DataFrame({**rows, "account_id": [*sources], "order_no": ["A", "", "B"]})
    every = np.ones(len(frame), dtype=np.bool_)
    legs = {
        name: Leg(frame, every, every, np.ones(len(frame), dtype=np.int64))
        for name in ("orders", "gateway")
    }
    return keys_of(legs, others={"universe": frame.iloc[:1]})


def test_of_one_account_nothing_is_held_beside_the_numbers_of_the_orders() -> None:
    """One number stands for the account of all rows; what is judged has whole numbers again."""
    keys = numbers("1", "1", "1")

    assert {column.dtype for column in keys.of.values()} == {np.dtype(np.int32)}
    held = [keys.account, *keys.account_of.values()]
    assert {column.strides for column in held} == {(0,)}
    assert keys.of["orders"].tolist() == [0, NO_KEY, 2]
    rest = keys.take({"orders": np.array([2, 0])})
    assert rest.of["orders"].tolist() == [2, 0]
    assert rest.of["gateway"].tolist() == [0, NO_KEY, 2]
    assert {column.dtype for column in rest.of.values()} == {np.dtype(np.intp)}


def test_keys_of_several_accounts_are_told_apart() -> None:
    """The same order number of another account has another number, and its own account."""
    keys = numbers("1", "1", "2")

    a, blank, b = keys.of["orders"].tolist()
    assert blank == NO_KEY
    assert keys.accounts == [("M", "1"), ("M", "2")]
    assert keys.account[[a, b]].tolist() == [0, 1]
    assert keys.account_of["gateway"].tolist() == [0, 0, 1]
