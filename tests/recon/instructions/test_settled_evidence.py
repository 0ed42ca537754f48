from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recon.instructions.resolution import SettledLine, by_settlement
from recon.model.words import InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

DOUBT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
ITEM = replace(
    INSTRUCTION,
    state=InstructionState.IN_DOUBT,
    in_doubt_since=DOUBT,
    gateway_request_id="G-1",
    payment_amount=INSTRUCTION.amount,
)
PART = replace(ITEM, payment_amount=ITEM.amount + 1)
OURS = {"own_reference": ITEM.instruction_id}


def line(kind: str, **changed: object) -> SettledLine:
    """A line of exactly the instruction's amount."""
    found = SettledLine(
        entry_type=kind,
        transaction_id=ITEM.transaction_id,
        reference_no="R-1",
        own_reference="",
        currency=ITEM.currency,
        gross=ITEM.amount if kind == "capture" else -ITEM.amount,
        settled_on="2026-11-21",
        source="S1.csv",
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def end(kind: InstructionKind, *lines: SettledLine, part: bool = False) -> str:
    """How the doubt ends; "" where it does not."""
    item = replace(PART if part else ITEM, kind=kind)
    if kind is InstructionKind.PAYOUT:
        item = replace(item, transaction_id="")
    found = by_settlement(item, lines=lines, known={"R-OURS"})
    return "" if found is None else found.state.value


K = InstructionKind


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
def test_the_one_movement_of_the_whole_payment_ends_the_doubt(kind: InstructionKind) -> None:
    """A line of this transaction over its whole amount, settled since the doubt began."""
    assert end(kind, line(kind.value)) == "resolved_applied"


def test_the_gateways_day_may_have_begun_before_ours() -> None:
    """A line of the day before the doubt counts: the gateway may date by another time zone."""
    assert end(K.CAPTURE, line("capture", settled_on="2026-11-20")) == "resolved_applied"


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((), id="nothing"),
        pytest.param(({"gross": 1},), id="other amount"),
        pytest.param(({"currency": "USD"},), id="other currency"),
        pytest.param(({"transaction_id": ""},), id="no transaction"),
        pytest.param(({"settled_on": "2026-11-19"},), id="before the doubt"),
        pytest.param(({}, {"reference_no": "R-2"}), id="two of them"),
        pytest.param(({"entry_type": "chargeback"},), id="another movement"),
        pytest.param(({"reference_no": "R-OURS"},), id="another refund of ours"),
        pytest.param(({"own_reference": "another"},), id="somebody else's reference"),
    ],
)
def test_what_may_be_of_another_movement_proves_nothing(
    kind: InstructionKind, lines: tuple[dict[str, object], ...]
) -> None:
    """Absence, and lines that need not be of this instruction, leave the doubt as it is."""
    shown = [line(kind.value, **changed) for changed in lines]
    assert end(kind, *shown) == ""


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
def test_a_part_ends_only_by_our_own_reference(kind: InstructionKind) -> None:
    """The same part may have been moved by people in the gateway's own pages."""
    assert end(kind, line(kind.value), part=True) == ""
    assert end(kind, line(kind.value, **OURS), part=True) == "resolved_applied"


def test_a_line_without_a_reference_is_not_of_whatever_has_none() -> None:
    """Some instructions have no request id at the gateway: a blank in a line names nobody."""
    unnamed = replace(PART, gateway_request_id="")
    assert by_settlement(unnamed, lines=[line("capture")], known=()) is None


@pytest.mark.parametrize("kind", [K.CANCEL, K.REVIEW, K.CANCEL_SUBSCRIPTION])
def test_kinds_that_move_no_settled_money_are_not_decided(kind: InstructionKind) -> None:
    """A capture of a payment whose cancel is in doubt is for the query and for people."""
    assert end(kind, line("capture"), line("refund")) == ""


def test_a_payout_ends_only_by_our_own_reference() -> None:
    """Payouts have no transaction: their amount alone may be another payee's."""
    alone = line("payout", transaction_id="")
    assert end(K.PAYOUT, alone) == ""
    assert end(K.PAYOUT, replace(alone, own_reference="G-1")) == "resolved_applied"
    numbered = replace(alone, own_reference="G-1", transaction_id="given by the gateway")
    assert end(K.PAYOUT, numbered) == "resolved_applied"
    known = replace(ITEM, kind=K.PAYOUT, transaction_id="another")
    ended = by_settlement(known, lines=[numbered], known=())
    assert ended is not None
    assert ended.state.value == "needs_human"
    paid = replace(ITEM, kind=K.PAYOUT)
    assert by_settlement(paid, lines=[line("payout")], known=()) is None


@pytest.mark.parametrize(
    "lines",
    [({"gross": -1},), ({"currency": "USD"},), ({"transaction_id": "other"},), ({}, {})],
)
def test_our_reference_with_anything_else_is_for_people(
    lines: tuple[dict[str, object], ...],
) -> None:
    """Another amount, currency or payment, or two lines, under our reference."""
    shown = [line("refund", **{**changed, **OURS}) for changed in lines]
    assert end(K.REFUND, *shown) == "needs_human"
