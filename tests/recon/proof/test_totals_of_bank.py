"""Each side of each total of the bank is broken once and seen to fail."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.bank.result import BankResult, judge_bank
from recon.matching.breaks.result_frames import Frames
from recon.matching.frames.sources import Sources
from recon.proof.control_totals import Proof
from recon.proof.totals_of_bank import bank_totals
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


def test_without_statements_nothing_is_asked() -> None:
    """The bank is not covered, and says so elsewhere."""
    case = Case().paid("BATCH-01", 500)
    rules = Rules.of({"bank": {}}, source="test")
    sources = Sources(orders=pd.DataFrame(), gateway=pd.DataFrame(), ledger=None, instructions=None)
    assert judge_bank(sources, rules=rules, as_of=AS_OF, previous=None) is None
    assert case.entries == []
