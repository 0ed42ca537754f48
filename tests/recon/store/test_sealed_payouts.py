from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from recon.gateway_client import RawReply, ReplyOutcome
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.planning import Action, Known, plan
from recon.model.words import GatewayState, InstructionKind, InstructionState
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.money.instruction_rows import move
from recon.store.money.journal import StoredJournal
from recon.store.money.sending_rows import paid_payees
from recon.store.nights.runs import Run
from recon.store.schema import batch, instruction
from tests.recon.instructions.sample_instructions import reply_of, request_of

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
PAYOUT = Action(
    action_id=1,
    file_id=1,
    file_name="instructions-1.csv",
    line=2,
    merchant_id="100042",
    account_id="100042001",
    order_no="",
    transaction_id="",
    kind=InstructionKind.PAYOUT,
    currency="EUR",
    order_amount=25_000,
    action_amount=25_000,
    reason="",
    request_id="P-1",
    strict=True,
    payee="DE…3000",
    payee_digest="d" * 64,
    content_digest="c" * 64,
    sealed="sealed details",
)


def _planned(store: Store, run: Run) -> Cleared:
    made = plan([PAYOUT], known=Known(), new_id=lambda: "i1", auto_approve=True)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=replace(made, links=()), at=AT)
    return Cleared(made.new[0], ShownPayment("", GatewayState.NONE, "", "EUR", 25_000))


def _sealed(store: Store) -> tuple[str, str]:
    with store.reading() as connection:
        found = connection.execute(select(instruction.c.state, instruction.c.sealed)).one()
    return found.state, found.sealed


def _answered(store: Store, run: Run, outcome: ReplyOutcome) -> None:
    cleared = _planned(store, run)
    journal = StoredJournal(store, run, run_id=run.run_id)
    journal.claim("b1", [cleared], request=request_of([cleared], sha="0" * 64), at=AT)
    reply = RawReply(200, {}, b"to DE89370400440532013000", AT)
    journal.keep_reply("b1", reply, kept=b"to ...")
    journal.record("b1", reply_of(outcome), at=AT)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ReplyOutcome.DONE, ("confirmed", "")),
        (ReplyOutcome.FAILED, ("rejected", "")),
        (ReplyOutcome.UNKNOWN, ("in_doubt", "sealed details")),
        (ReplyOutcome.NOT_SENT, ("approved", "sealed details")),
    ],
)
def test_details_are_erased_when_the_payout_is_final(
    store: Store, run: Run, outcome: ReplyOutcome, expected: tuple[str, str]
) -> None:
    """A final payout keeps no account; one that may still need it does."""
    _answered(store, run, outcome)

    assert _sealed(store) == expected


def test_a_payee_is_known_once_a_payout_took_effect(store: Store, run: Run) -> None:
    """A payee of a payout that only waits is still a new one."""
    _answered(store, run, ReplyOutcome.DONE)
    with store.reading() as connection:
        assert paid_payees(connection, run) == {"d" * 64}


def test_a_payee_of_a_doubtful_payout_is_not_known_yet(store: Store, run: Run) -> None:
    """Doubt is no proof that this account was ever paid."""
    _answered(store, run, ReplyOutcome.UNKNOWN)
    with store.reading() as connection:
        assert paid_payees(connection, run) == frozenset()


def test_a_withdrawn_payout_keeps_no_details(store: Store, run: Run) -> None:
    """What a person takes back is erased too."""
    cleared = _planned(store, run)
    with store.writing() as connection:
        move(connection, cleared.instruction, to=InstructionState.WITHDRAWN, values={})

    assert _sealed(store) == ("withdrawn", "")


def test_a_reply_that_names_the_payee_is_kept_masked(store: Store, run: Run) -> None:
    """The journal keeps what may be stored of a reply, and the hash of what was received."""
    _answered(store, run, ReplyOutcome.DONE)
    with store.reading() as connection:
        assert connection.execute(select(batch.c.reply)).scalar_one() == b"to ..."
