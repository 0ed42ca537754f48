import pytest

from recon.model.words import ControlTotal, InstructionKind
from recon.steps.money.gate import judge

TIES = ControlTotal("T1", "rows read", "100042", "100042001", "", "count", 10, 10)
FAILS = ControlTotal("T3", "keys answered", "100042", "100042001", "", "count", 10, 9)


def test_an_open_gate_lets_everything_pass() -> None:
    """Totals that tie, a whole chain and proven nights hold nothing back."""
    gate = judge(totals=[TIES], chain_problem="", unproven_nights={})

    assert [gate.hold_on(kind) for kind in InstructionKind] == [""] * len(InstructionKind)


@pytest.mark.parametrize(
    ("totals", "chain_problem", "words"),
    [([TIES, FAILS], "", "T3 keys answered"), ([TIES], "history 3 is missing", "history 3")],
)
def test_a_failed_proof_closes_the_gate_for_all(
    totals: list[ControlTotal], chain_problem: str, words: str
) -> None:
    """A total that does not tie or a broken chain stops every kind of money."""
    gate = judge(totals=totals, chain_problem=chain_problem, unproven_nights={})

    assert all(words in gate.hold_on(kind) for kind in InstructionKind)


def test_an_unproven_night_holds_refunds_but_not_captures() -> None:
    """After a NOT PROVEN night refunds and payouts wait, captures go on."""
    gate = judge(totals=[TIES], chain_problem="", unproven_nights={"2026-11-19": ""})

    assert gate.hold_on(InstructionKind.CAPTURE) == ""
    assert "2026-11-19" in gate.hold_on(InstructionKind.REFUND)
    assert "2026-11-19" in gate.hold_on(InstructionKind.PAYOUT)


def test_books_that_were_not_read_hold_what_gives_money_only() -> None:
    """Authorisations lapse, so captures and cancels go; both holds are told where both hold."""
    nights = {"2026-11-19": ""}
    gate = judge(
        totals=[TIES], chain_problem="", unproven_nights=nights, books_unread="no such file"
    )

    assert gate.hold_on(InstructionKind.CAPTURE) == gate.hold_on(InstructionKind.CANCEL) == ""
    for kind in (InstructionKind.REFUND, InstructionKind.PAYOUT):
        assert "no such file" in gate.hold_on(kind)
        assert "2026-11-19" in gate.hold_on(kind)
