from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete, insert, update

from recon.desk.endorsement import Kind
from recon.desk.held_keys import NO_KEYS, SANDBOX_KEYS, HeldKeys
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.instructions.instruction import Instruction, Intention
from recon.instructions.planning import Plan
from recon.model.errors import GateClosedError
from recon.model.terms import (
    GatewayState,
    InstructionKind,
    InstructionState,
    SourceFile,
    SourceKind,
)
from recon.store.database import history
from recon.store.money import case_rows, endorsement_rows, instruction_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.money.journal import left_out
from recon.store.nights import order_rows
from recon.store.people.decision_rows import not_agreed
from recon.store.schema import endorsement, instruction, order_action
from tests.recon.instructions.sample_instructions import INSTRUCTION
from tests.recon.store import decided

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
SHOWN = {"T1": ["2000"], "T7": ["3000"]}
"""What the baseline shows."""


def _item(run, **changed):
    base = replace(
        INSTRUCTION,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        file_id=None,
        state=InstructionState.CONFIRMED,
        attempts=1,
        baseline_status="2000",
    )
    return replace(base, **changed)  # type: ignore[arg-type]


def _keep(store, run, *items):
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)
        connection.execute(update(instruction).values(sent_at=AT, outcome_at=AT))


def test_final_instructions_whose_payment_was_asked_for_are_looked_at(store, run):
    _keep(
        store,
        run,
        _item(run),
        _item(run, instruction_id="i2", natural_key="k2", state=InstructionState.NEEDS_HUMAN),
        _item(run, instruction_id="i3", natural_key="k3", kind=InstructionKind.REVIEW),
        _item(run, instruction_id="i4", natural_key="k4", transaction_id="T9"),
    )
    with store.reading() as connection:
        found = case_rows.ended_and_reported(connection, run, statuses=SHOWN)

    assert [(one.instruction_id, shown) for one, shown in found] == [("i1", "2000")]


def test_a_case_is_opened_once_and_stands_in_the_history(store, run):
    _keep(store, run, _item(run))
    with store.writing() as connection:
        case_rows.open_case(connection, _item(run), reason="it shows authorised", at=AT)
        opened = case_rows.open_cases(connection, run)
        again = case_rows.ended_and_reported(connection, run, statuses=SHOWN)
        case_rows.close_case(connection, "i1", verdict="applied", reason="by ann and ben", at=AT)

        assert [(one.item.kind, one.item.order_no, one.item.amount) for one in opened] == [
            ("capture", "A-1", 10_000)
        ]
        assert again == []
        assert case_rows.open_cases(connection, run) == []
        assert not case_rows.has_case(connection, "i1", open_only=True)
        events = [
            row.event
            for entity in ("instruction", "case")
            for row in history.links_of(connection, ["i1"], entity=entity)
        ]
        assert events == ["confirmed", "opened", "closed"]
        assert history.verify(connection)[1] == ""


def _save(store, run):
    refund = replace(INSTRUCTION, kind=InstructionKind.REFUND, file_id=None, transaction_id="")
    items = (
        replace(refund, state=InstructionState.CONFIRMED, transaction_id="T1", request_id="R-1"),
        replace(refund, instruction_id="i2", natural_key="k2", order_no="A-2"),
        replace(refund, instruction_id="i3", natural_key="k3", again_for="i1", order_no="A-3"),
    )
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)


def test_the_journal_is_read_as_intentions(store, run):
    """Each row is known by what it means; where it names no payment, by the one that is shown."""
    _save(store, run)
    with store.reading() as connection:
        unnamed = instruction_rows.unnamed_orders(connection, run)
        known = instruction_rows.known(connection, run, only_payments={"A-2": "T2"})
    meant = replace(INSTRUCTION, kind=InstructionKind.REFUND, order_no="A-9")
    alike = {
        name: [one.instruction_id for one in known.alike(Intention.of(meant_of))]
        for name, meant_of in {
            "T1": meant,
            "T2": replace(meant, transaction_id="T2"),
            "A-3": replace(meant, order_no="A-3", transaction_id=""),
        }.items()
    }

    assert unnamed == {"A-2", "A-3"}
    assert alike == {"T1": ["i1"], "T2": ["i2"], "A-3": ["i3"]}
    assert [known.of_key(key).is_again for key in ("k1", "k3")] == [False, True]  # type: ignore[union-attr]  # both are there
    found = known.of_request("r-1")
    assert found.instruction_id == "i1"


@pytest.mark.parametrize("kind", ["orders", "instructions"])
def test_rows_without_an_instruction_are_to_be_planned(store, run, kind):
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    row: dict[str, Any] = {**place, "line": 2, "order_no": "A-5", "action": "refund"}
    row |= {"currency": "EUR", "amount": 10_000, "action_amount": None}
    row |= {"transaction_id": "", "instruction_id": ""}
    source = SourceFile(SourceKind(kind), "o.csv", "sha", 1, 2, 2, 0, 0)
    with store.writing() as connection:
        row["file_id"] = order_rows.insert_file(connection, run, source=source, at=AT)
        connection.execute(insert(order_action), [row, row | {"line": 3, "instruction_id": "i1"}])
        found = instruction_rows.unplanned_actions(connection, run)
        unnamed = instruction_rows.unnamed_orders(connection, run)
        connection.execute(insert(order_action), [row | {"line": line} for line in (4, 5)])
        new = [one.action_id for one in instruction_rows.unplanned_actions(connection, run)]
        links = ((new[0], "i2"), (new[2], "i3"))
        instruction_rows.save_plan(connection, run, plan=Plan((), links), at=AT)
        left = [one.line for one in instruction_rows.unplanned_actions(connection, run)]

    assert [(one.line, one.amount, one.strict) for one in found] == [
        (2, 10_000, kind == "instructions")
    ]
    assert unnamed == {"A-5"}
    assert left == [4]


WANTED = replace(INSTRUCTION, kind=InstructionKind.REFUND, file_id=None, request_id="R-1")
DONE = replace(
    WANTED,
    instruction_id="i0",
    natural_key="k0",
    state=InstructionState.CONFIRMED,
    request_id="R-2",
)
ALONE: dict[str, Any] = {"order_no": "", "transaction_id": ""}


def _left_out(store, run, *items, ids_unique=False):
    wanted = items[0]
    paid = QueriedPayment(wanted.transaction_id, GatewayState.PAID, "3000", "EUR", 10_000)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)
        found = left_out(connection, [Eligible(wanted, paid)], ids_unique=ids_unique)
    return list(found.values())


PAID_OUT: dict[str, Any] = {**ALONE, "kind": InstructionKind.PAYOUT}
ENDED: dict[str, Any] = {**ALONE, "kind": InstructionKind.CANCEL_SUBSCRIPTION}


def _about(wanted, done=None):
    return replace(WANTED, **wanted), replace(DONE, **(wanted if done is None else done))


BESIDE: dict[str, tuple[tuple[Instruction, Instruction], bool, str]] = {
    "another amount": ((WANTED, replace(DONE, amount=1)), False, ""),
    **{
        f"carried out meanwhile: {state}": (
            (WANTED, replace(DONE, state=InstructionState(state))),
            False,
            f"repeat of instruction i0, which is {state}",
        )
        for state in ("confirmed", "in_flight", "in_doubt", "needs_human")
    },
    "people let both go": ((replace(WANTED, repeats="i0"), DONE), False, ""),
    "the merchant's ids are unique": ((WANTED, DONE), True, ""),
    "a payout to the same payee": (_about({**PAID_OUT, "payee_digest": "d1"}), False, "repeat"),
    "a payout to another payee": (
        _about({**PAID_OUT, "payee_digest": "d1"}, {**PAID_OUT, "payee_digest": "d2"}),
        *(False, ""),
    ),
    "the end of one subscription": (_about({**ENDED, "recurring_id": "s1"}), False, "repeat"),
    "the end of another subscription": (
        _about({**ENDED, "recurring_id": "s1"}, {**ENDED, "recurring_id": "s2"}),
        *(False, ""),
    ),
}
"""What is about to leave and what is done; whether ids are unique; why it is left out."""


@pytest.mark.parametrize("name", BESIDE)
def test_what_another_carried_out_meanwhile_is_left_out(store, run, name):
    items, ids_unique, why = BESIDE[name]
    told = _left_out(store, run, *items, ids_unique=ids_unique)

    assert len(told) == bool(why)
    assert why in "".join(told)


@pytest.mark.parametrize("state", ["withdrawn", "rejected", "confirmed", "in_doubt"])
def test_what_is_no_longer_approved_is_left_out(store, run, state):
    stands = replace(WANTED, state=InstructionState(state), message="changed their mind")
    paid = QueriedPayment(WANTED.transaction_id, GatewayState.PAID, "3000", "EUR", 10_000)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan([stands], ()), at=AT)
        found = left_out(connection, [Eligible(WANTED, paid)], ids_unique=True)

    assert found == {"i1": f"it is {state} since this run looked: changed their mind"}


def test_a_row_that_is_gone_is_left_out(store):
    gone = Eligible(WANTED, QueriedPayment("T1", GatewayState.PAID, "3000", "EUR", 10_000))
    with store.reading() as connection:
        found = left_out(connection, [gone], ids_unique=False)

    assert found == {"i1": "the journal does not have it any more"}


def test_what_an_account_asks_of_the_journal_is_its_own(store, run):
    """An instruction of a neighbour is no repeat, no doubt and no limit of this account."""
    others = replace(run, account_id="100042002")
    theirs = replace(DONE, account_id="100042002")
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan((WANTED,), ()), at=AT)
        instruction_rows.save_plan(connection, others, plan=Plan((theirs,), ()), at=AT)
        kinds = [InstructionKind.REFUND]
        by_account = [
            [each.instruction_id for each in instruction_rows.find(connection, owner, kind=kinds)]
            for owner in (run, others, None)
        ]

    assert by_account == [[WANTED.instruction_id], ["i0"], [WANTED.instruction_id, "i0"]]


NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def said(store, *people, subject="r1"):
    names = [person.title() for person in people]
    with store.writing() as connection:
        decided.said(connection, Kind.RELEASE, subject, *names, at=NOW)


def problem(store):
    with store.reading() as connection:
        return not_agreed(connection, Kind.RELEASE, subject="r1", desk=SANDBOX_KEYS)


def broken(store):
    with store.reading() as connection:
        return list(Endorsed(SANDBOX_KEYS).broken(connection))


def test_two_words_are_two_people(store):
    said(store, "jo")
    assert problem(store) == "the desk endorsed it for Jo alone"
    said(store, "kim")
    assert (problem(store), broken(store)) == ("", [])


def test_a_changed_column_is_told(store):
    """The columns are there to find it by: the document counts, where they say the same."""
    said(store, "jo", "kim", subject="r2")
    with store.writing() as connection:
        connection.execute(update(endorsement).values(subject="r1"))
    assert problem(store) == "the desk endorsed it for nobody"
    assert "endorsement 1: its columns are not those of its document" in broken(store)


def test_what_was_removed_or_put_beside_is_told(store):
    """A gap in the numbers, and a row without the desk's signature."""
    said(store, "jo", "kim", "ann")
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == 2))
        connection.execute(
            insert(endorsement).values(
                sequence=4, kind="override", person="x", at=NOW, document="{}", signature="00"
            )
        )
    told = broken(store)
    assert any("endorsement 4" in one and "not the desk's" in one for one in told)
    assert any("endorsement 2 is missing" in one for one in told)


def test_words_are_opened_once(store):
    words = Endorsed(SANDBOX_KEYS)
    said(store, "jo")
    with store.reading() as connection:
        assert [one.person for one in words.statements(connection)] == ["jo"]
    said(store, "kim")
    with store.reading() as connection:
        assert [one.person for one in words.statements(connection)] == ["jo", "kim"]
        assert list(words.broken(connection)) == []
        assert words.taken_away(connection) == ""


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_each_missing_word_is_told(store, gone):
    said(store, "jo", "kim", "lee")
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == gone))
    with store.reading() as connection:
        words = Endorsed(SANDBOX_KEYS)
        assert f"endorsement {gone} is gone" in words.taken_away(connection)
        assert f"endorsement {gone} " in next(words.broken(connection))
        with pytest.raises(GateClosedError, match="is gone or not the desk's"):
            Endorsed(SANDBOX_KEYS).refuse_rows(connection, [])


def test_signed_numbers_have_no_gap(store, monkeypatch):
    """Also where the links of what is gone were taken away."""
    said(store, "jo", "kim", "lee")
    monkeypatch.setattr(endorsement_rows, "links_of", lambda *_, **__: [])
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == 2))
        words = Endorsed(SANDBOX_KEYS)
        assert "endorsement 2 is gone" in words.taken_away(connection)
        assert list(words.broken(connection)) == [
            "endorsement 2 is missing, or is not what the history has"
        ]


def test_without_a_key_nothing_is_opened(store):
    said(store, "jo")
    with store.reading() as connection:
        words = Endorsed(NO_KEYS)
        assert words.statements(connection) == []


def test_words_of_another_key_alone_take_none_away(store):
    """Nothing rests on what was said before the first word that holds."""
    said(store, "jo", "kim")
    key = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    with store.reading() as connection:
        words = Endorsed(HeldKeys(key, None, must_be_proven=True))
        assert words.statements(connection) == []
        assert words.taken_away(connection) == ""
