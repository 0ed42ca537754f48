from dataclasses import replace

import pytest
from sqlalchemy import select

from recon.gateway_client import RawReply, ReplyOutcome
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.model.words import GatewayState, InstructionKind, InstructionState
from recon.store.database.engine import Store
from recon.store.money.instruction_rows import move
from recon.store.money.journal import StoredJournal
from recon.store.money.sending_rows import paid_payees
from recon.store.nights.runs import Run
from recon.store.schema import batch, instruction
from tests.recon.instructions.sample_instructions import reply_of, request_of
from tests.recon.store.scripted import AT, CAPTURE, planned

PAYOUT = replace(
    CAPTURE,
    order_no="",
    kind=InstructionKind.PAYOUT,
    order_amount=25_000,
    action_amount=25_000,
    request_id="P-1",
    strict=True,
    payee="DE…3000",
    payee_digest="d" * 64,
    content_digest="c" * 64,
    sealed="sealed details",
)


def _planned(store: Store, run: Run) -> Cleared:
    (payout,) = planned(store, run, PAYOUT)
    return Cleared(payout, ShownPayment("", GatewayState.NONE, "", "EUR", 25_000))


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
    ("outcome", "expected", "known"),
    [
        (ReplyOutcome.DONE, ("confirmed", ""), {"d" * 64}),
        (ReplyOutcome.FAILED, ("rejected", ""), set()),
        (ReplyOutcome.UNKNOWN, ("in_doubt", "sealed details"), set()),
        (ReplyOutcome.NOT_SENT, ("approved", "sealed details"), set()),
    ],
)
def test_details_are_erased_when_the_payout_is_final(
    store: Store, run: Run, outcome: ReplyOutcome, expected: tuple[str, str], known: set[str]
) -> None:
    """One that may still need them keeps them; doubt is no proof that a payee was ever paid."""
    _answered(store, run, outcome)
    with store.reading() as connection:
        paid, reply = (
            paid_payees(connection, run),
            connection.execute(select(batch.c.reply)).scalar(),
        )

    assert _sealed(store) == expected
    assert (paid, reply) == (known, b"to ...")


def test_a_withdrawn_payout_keeps_no_details(store: Store, run: Run) -> None:
    cleared = _planned(store, run)
    with store.writing() as connection:
        move(connection, cleared.instruction, to=InstructionState.WITHDRAWN, values={})

    assert _sealed(store) == ("withdrawn", "")
