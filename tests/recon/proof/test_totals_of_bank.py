"""Each side of each total of the bank is broken once and seen to fail."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.bank.result import BankResult, judge_bank
from recon.matching.breaks.result_rows import Frames
from recon.matching.frames.sources import Sources
from recon.proof.totals_of_bank import bank_totals
from recon.proof.verdict import Proof
from tests.recon.matching.bank.cases import AS_OF, Case


@pytest.fixture
def proof() -> Proof:
    """A pay-out that came less 2.50, one in transit, one less charges, one from before."""
    case = Case().paid("BATCH-01", 10_000).came("BATCH-01", 9_750)
    case.paid("BATCH-02", 500, on="2026-11-30").paid("BATCH-03", 700, on="2026-10-01")
    return case.paid("BATCH-04", 800).came("BATCH-04", 780, charges=-20).proven()


def failed(
    proof: Proof,
    *,
    sources: Sources | None = None,
    result: BankResult | None = None,
    frames: Frames | None = None,
) -> set[str]:
    """The totals that fail with one of these in the place of its own."""
    totals = bank_totals(
        sources or proof.sources,
        result=result or proof.bank,
        frames=frames or proof.frames,
        rules=proof.rules,
    )
    return {one.id for one in totals if not one.passed}


def test_nothing_fails_where_nothing_is_broken(proof: Proof) -> None:
    """All three are asked, and hold."""
    totals = [
        *bank_totals(proof.sources, result=proof.bank, frames=proof.frames, rules=proof.rules)
    ]
    assert {one.id for one in totals} == {"T15", "T16", "T17"}
    assert failed(proof) == set()


def _entry_lost(sources: Sources) -> Sources:
    assert sources.bank is not None
    entries = sources.bank.entries
    return replace(sources, bank=replace(sources.bank, entries=entries.iloc[1:]))


def _closing_moved(sources: Sources) -> Sources:
    assert sources.bank is not None
    (one,) = sources.bank.statements
    moved = replace(one, closing=(one.closing or 0) + 1)
    return replace(sources, bank=replace(sources.bank, statements=(moved,)))


def _payout_lost(sources: Sources) -> Sources:
    lines = sources.settlement
    assert lines is not None
    return replace(sources, settlement=lines[lines["batch_id"].ne("BATCH-02")])


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (_entry_lost, {"T15", "T16"}),
        (_closing_moved, {"T15", "T16"}),
        (_payout_lost, {"T17"}),
    ],
)
def test_a_source_that_lost_something_fails(
    proof: Proof, break_it: Callable[[Sources], Sources], expected: set[str]
) -> None:
    """An entry behind the door, a balance, a pay-out row."""
    assert failed(proof, sources=break_it(proof.sources)) == expected


def test_an_entry_in_scope_that_is_forgotten_fails(proof: Proof) -> None:
    """The left side of T17 counts every entry in scope."""
    assert proof.bank is not None
    less = replace(proof.bank, receipts=proof.bank.receipts[1:])
    assert failed(proof, result=less) == {"T17"}


def test_an_effect_that_is_lost_on_its_way_fails(proof: Proof) -> None:
    """The right side of T17 reads the effects as the result shows them."""
    effects: pd.DataFrame = proof.frames.effects
    less = replace(proof.frames, effects=effects[effects["leg"].ne("bank")])
    assert failed(proof, frames=less) == {"T17"}


@pytest.mark.parametrize("name", ["in transit", "opening", "charges"])
def test_what_explains_a_difference_cannot_be_lost(proof: Proof, name: str) -> None:
    """In transit, listed from before, taken by the bank: each is a part of T17."""
    bank = proof.bank
    assert bank is not None
    if name == "opening":
        changed = replace(bank, paired=replace(bank.paired, opening=()))
    else:
        less = {
            own: found
            for own, found in bank.ids.items()
            if not (found.charges if name == "charges" else found.state.value == "PENDING")
        }
        changed = replace(bank, ids=less)
    assert failed(proof, result=changed) == {"T17"}


@pytest.fixture
def exchanged() -> Proof:
    """Pay-outs by dated rates: one comes short, one within what is allowed; minor units differ."""
    case = Case().paid("BATCH-01", 1_005, currency="USD").came("BATCH-01", 900)
    case.paid("BATCH-02", 10_000, currency="USD").came("BATCH-02", 9_009)
    case.paid("BATCH-03", 110, currency="JPY").came("BATCH-03", 68)
    case.rules = {
        "rate": {
            "USD.EUR": {"on": {"2026-11-10": "0.9", "2026-11-13": "0.2"}, "basis_points": 10},
            "JPY.EUR": {"on": {"2026-11-11": "0.00615"}},
        }
    }
    return case.proven()


def _figures(proof: Proof, *, result: BankResult | None = None) -> dict[str, tuple[int, int]]:
    totals = bank_totals(
        proof.sources, result=result or proof.bank, frames=proof.frames, rules=proof.rules
    )
    words = ("exchanged at dated", "beyond")
    return {
        f"{word} {one.currency}": (one.left, one.right)
        for one in totals
        for word in words
        if word in one.name
    }


def test_what_went_through_a_dated_rate_is_counted_twice(exchanged: Proof) -> None:
    """From the findings, and from pay-outs and rates: 9.04 and 90.00, 0.68 for 110 yen."""
    assert _figures(exchanged) == {"exchanged at dated EUR": (9972, 9972), "beyond EUR": (0, 0)}
    assert failed(exchanged) == set()


def test_a_pay_out_by_another_rate_than_that_of_its_day_fails(exchanged: Proof) -> None:
    """Left: the finding was made by another rate. Right: the rules have another one since."""
    assert exchanged.bank is not None
    moved = {
        own: replace(found, exchanged=tuple((unit, amount - 1) for unit, amount in found.exchanged))
        for own, found in exchanged.bank.ids.items()
    }
    left, right = _figures(exchanged, result=replace(exchanged.bank, ids=moved))[
        "exchanged at dated EUR"
    ]
    assert (left, right) == (9975, 9972)
    dear = exchanged.rules.model_dump(mode="json")
    dear["rate"]["USD.EUR"]["on"]["2026-11-12"] = "0.95"
    other = replace(exchanged, rules=Rules.of(dear, source="test"))
    left, right = _figures(other)["exchanged at dated EUR"]
    assert (left, right) == (9972, 955 + 9500 + 68)
    assert failed(other) == {"T17"}


def test_a_difference_that_no_rate_allows_fails(exchanged: Proof) -> None:
    """What is called within the rate's bound is held against it once more."""
    strict = exchanged.rules.model_dump(mode="json")
    strict["rate"]["USD.EUR"]["basis_points"] = 9
    other = replace(exchanged, rules=Rules.of(strict, source="test"))
    assert _figures(other)["beyond EUR"] == (1, 0)
    assert failed(other) == {"T17"}


def test_without_statements_nothing_is_asked() -> None:
    """The bank is not covered, and says so elsewhere."""
    case = Case().paid("BATCH-01", 500)
    rules = Rules.of({"bank": {}}, source="test")
    sources = Sources(orders=pd.DataFrame(), gateway=pd.DataFrame(), ledger=None, instructions=None)
    assert judge_bank(sources, rules=rules, as_of=AS_OF, previous=None) is None
    assert case.entries == []
