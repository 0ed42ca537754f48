"""Nobody's yes can be made with the database alone: what the desk did not sign moves nothing."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr
from sqlalchemy import delete, insert, select, update

from recon.acts import ActContext, Approve, RejectInstructions, ReleaseHold, carry_out, submit
from recon.desk.endorsement import (
    TAG,
    Endorsement,
    Kind,
    Signed,
    canonical,
    instant,
    opened,
    row_problem,
)
from recon.desk.held_keys import NO_KEYS, SANDBOX_KEYS
from recon.instructions.instruction import terms_of
from recon.instructions.planning import RULE_APPROVER
from recon.model.errors import ConfigurationError, GateClosedError, UsageError
from recon.model.terms import InstructionState
from recon.steps.admin.verify import unendorsed, verify
from recon.steps.approvals.returned_answers import Form
from recon.steps.money.approve import approve, waiting
from recon.steps.money.gate import allow_sending, gate_of, sending_stopped, stop_sending
from recon.steps.runtime.identity import (
    WRONG_CODES_MAX,
    endorsements_for_signer,
    go_on_restored,
    identify,
    lost_endorsement,
    name_of,
    refuse_open_files,
    waiting_decisions,
)
from recon.store.database.engine import Store, parse_url
from recon.store.database.history import Event, append
from recon.store.database.record import ROW
from recon.store.money import endorsement_rows, instruction_rows, sending_rows
from recon.store.money.endorsement_rows import Endorsed, named_database, next_sequence
from recon.store.money.instruction_rows import move
from recon.store.nights import runs
from recon.store.people import decision_rows
from recon.store.schema import endorsement, instruction, used_code, wrong_code
from reports.workbook_io import drawings
from tests.recon.steps.conftest import UNREAD
from tests.recon.steps.people import declared
from tests.recon.steps.runtime.test_identity import code_of, declare
from tests.recon.steps.signing import desk_with_keys
from tests.recon.store import decided

BOTH = "Jo Ahn, Kim Bell"
PEOPLE = declared(jo="Jo Ahn", kim="Kim Bell", limit="EUR = 1000000")


def wait_for_two(merchant):
    """A refund of 1.00 that nobody has approved."""
    merchant.refund_for_two(PEOPLE)


def yes(environment, *names):
    """The yes of some people to all that waits."""
    for name in names:
        person = identify(name, code=None, environment=environment)
        approve(waiting(environment).approvals.digest, person=person, environment=environment)


def settled(merchant):
    """Why the last night sent nothing."""
    return str(next(one for one in merchant.told[::-1] if one.step == "settle").figures["stopped"])


@pytest.fixture
def keyed(tmp_path_factory):
    """Variables of the desk; without the last one those of a night."""
    return desk_with_keys(tmp_path_factory.mktemp("desk"))


def as_night(merchant, keyed):
    """From now on this process has the public key alone."""
    merchant.variables |= keyed | {"RECON_DESK_KEY_FILE": ""}


def forge(environment, *, by=BOTH):
    """Approve all that waits with the database's login alone: state, approval and history."""
    now = environment.clock()
    with environment.store.writing() as connection:
        waiting_now = instruction_rows.find(connection, state=(InstructionState.PLANNED,))
        values = {"approved_by": by, "approved_at": now, "hold": ""}
        moved = [
            (item, move(connection, item, to=InstructionState.APPROVED, values=values))
            for item in waiting_now
        ]
        events = [replace(one, data={**one.data, ROW: terms_of(item)}) for item, one in moved]
        append(connection, events, at=now)


def problems_of(merchant):
    """What `recon verify` finds."""
    with merchant.environment() as environment:
        return "; ".join(verify(environment, reading=UNREAD).problems)


@pytest.mark.parametrize("by", [BOTH, RULE_APPROVER, ""])
def test_a_forged_approval_sends_nothing(begun, by):
    """Whoever writes two names, or the rule's, into every table is found before money moves."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        forge(environment, by=by)
    told = problems_of(merchant)
    merchant.move_money()

    assert merchant.effects() == []
    assert "counts as approved" in settled(merchant)
    assert "counts as approved" in told


def test_a_stranger_can_check_what_it_is_handed(begun):
    """Terms and words as a signing process gets them cover the row, by the public key alone."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        with environment.store.reading() as connection:
            (item,) = instruction_rows.find(connection, state=(InstructionState.APPROVED,))
        words = endorsements_for_signer(environment)([item.instruction_id])
    assert SANDBOX_KEYS.public is not None
    found = [opened(Signed(**one), key=SANDBOX_KEYS.public) for one in words.endorsements]
    terms = words.seen[item.instruction_id]
    assert [one.person for one in found] == ["jo", "kim"]
    check = partial(row_problem, item.instruction_id, endorsements=found, must_be_proven=False)
    assert check(terms=terms) == ""
    assert "for nobody" in check(terms={**terms, "amount": 200})


def test_only_the_desk_hears_people(begun, keyed):
    """A process without the private key takes nobody's word."""
    merchant = begun(wait_for_two)
    as_night(merchant, keyed)
    with (
        merchant.environment() as environment,
        pytest.raises(UsageError, match="is not the desk"),
    ):
        yes(environment, "jo")
    assert merchant.instruction_states() == {"planned": 1}


def test_a_larger_amount_bound_anew_is_not_endorsed(begun):
    """Who changes the table and binds the change in the history still lacks two people."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        with environment.store.writing() as connection:
            connection.execute(update(instruction).values(amount=instruction.c.amount + 100))
            (item,) = instruction_rows.find(connection, state=(InstructionState.APPROVED,))
            told = {"approved_by": BOTH, ROW: terms_of(item)}
            event = Event("instruction", item.instruction_id, "approved", told)
            append(connection, [event], at=environment.clock())
    merchant.move_money()

    assert merchant.effects() == []
    assert "counts as approved" in settled(merchant)


def not_released(connection, desk):
    """Why two people did not release the night."""
    return decision_rows.not_agreed(connection, Kind.RELEASE, subject="r1", desk=desk)


def forge_signatures(connection):
    """Each statement under the signature of a key that is not the desk's."""
    forger = Ed25519PrivateKey.generate()
    for row in connection.execute(select(endorsement)).all():
        signature = forger.sign(TAG + row.document.encode()).hex()
        own = update(endorsement).where(endorsement.c.sequence == row.sequence)
        connection.execute(own.values(signature=signature))


def test_a_forged_release_holds_on(merchant):
    """Refunds wait until two people released the night, not until a table says so."""
    with merchant.environment() as environment, environment.store.writing() as connection:
        decided.said(connection, Kind.RELEASE, "r1", "Jo Ahn", "Kim Bell", at=environment.clock())
        assert not_released(connection, environment.desk) == ""
        forge_signatures(connection)
        assert "for nobody" in not_released(connection, environment.desk)
        assert decision_rows.who_released(connection, "r1", desk=environment.desk) is None
    assert "its signature is not the desk's" in problems_of(merchant)


def test_a_forged_first_word_is_no_half(begun):
    """Whoever speaks after it is the first of the two, and nothing is sent."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "kim")
        with environment.store.writing() as connection:
            forge_signatures(connection)
        assert waiting(environment).first_by == ""
        yes(environment, "jo")
        assert waiting(environment).first_by == "Jo Ahn"
    assert merchant.instruction_states() == {"planned": 1}


def test_a_stop_that_nobody_ended_goes_on(begun):
    """A turn of the switch without two words closes the gate and stops a night at work."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        stop_sending(by="Jo", reason="looks wrong", environment=environment)
        with environment.store.writing() as connection:
            sending_rows.turn_switch(
                connection, stop=False, by=BOTH, reason="fine", at=environment.clock()
            )
        assert sending_stopped(environment) is None
        assert waiting_decisions(environment) == []
    merchant.move_money()

    assert merchant.effects() == []
    assert "sending was allowed again, but the desk" in settled(merchant)
    assert "sending was allowed again" in problems_of(merchant)


def test_the_claim_looks_again(begun):
    """What is forged between the gate and the claim ends the night before a byte leaves."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")

    def mark(at):
        if at == "before claim":
            with merchant.environment() as other, other.store.writing() as connection:
                connection.execute(update(endorsement).values(signature="00" * 64))

    with (
        merchant.environment() as environment,
        pytest.raises(GateClosedError, match="counts as approved"),
    ):
        merchant.run(replace(environment, crash_point=mark))
    assert merchant.effects() == []


@pytest.fixture
def live(merchant, keyed):
    """An environment whose gateway is not on this machine."""
    people = '[approvers.jo]\nname = "Jo Ahn"\n'
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    merchant.variables |= keyed | {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with merchant.environment() as opened:
        yield opened


def replace_name(person, name):
    """Somebody declared like another person, under another full name."""
    return person.declared.model_copy(update={"name": name})


def test_towards_a_live_gateway_unproven_words_cover_nothing(live):
    """Even words that the desk signed count there only when a code proved who spoke."""
    jo = identify("jo", code=None, environment=live)
    kim = replace(jo, short="kim", declared=replace_name(jo, "Kim Bell"))
    with live.store.writing() as connection:
        for person in (jo, kim):
            person.endorse(connection, Kind.RELEASE, "r1")
        assert "for nobody" in not_released(connection, live.desk)
        assert not_released(connection, replace(live.desk, must_be_proven=False)) == ""


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("import", {"file_name": "a.xlsx", "content": ""}),
        ("sign-off", {"run_id": "r1", "role": "reviewer"}),
    ],
)
def test_towards_a_live_gateway_nobody_writes_off_or_signs_without_a_code(live, act, said):
    """A returned workbook and a signature need a code there, before anything is looked at."""
    unread = replace(
        drawings(),
        form=Form(lambda path: pytest.fail(f"{path} was read"), lambda _: ""),
        copy=lambda content, **_: pytest.fail(f"{content!r} was read"),
    )
    with pytest.raises(UsageError, match="counts with a current one-time code only"):
        carry_out(
            act, {"person": "jo", **said}, origin="", context=ActContext(live, lambda: unread)
        )


def test_towards_a_live_gateway_nothing_is_approved_by_hand_alone(begun):
    """What one person may at the sandbox closes the gate anywhere else."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        forge(environment, by="by hand: jo")
        with environment.store.reading() as connection:
            at_sandbox = endorsement_rows.Endorsed(SANDBOX_KEYS)
            elsewhere = endorsement_rows.Endorsed(replace(SANDBOX_KEYS, must_be_proven=True))
            assert list(at_sandbox.row_problems(connection)) == []
            assert len(list(elsewhere.row_problems(connection))) == 1
            run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
        desk = replace(SANDBOX_KEYS, must_be_proven=True)
        gate = gate_of(run, environment=replace(environment, desk=desk))
    assert "counts as approved" in gate.closed_because


def test_without_a_key_nothing_that_people_approved_goes(begun):
    """Towards a live gateway without a desk the gate is closed and says what is missing."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        with environment.store.reading() as connection:
            (problem,) = endorsement_rows.Endorsed(NO_KEYS).row_problems(connection)
    assert "RECON_DESK_PUBLIC_KEY_FILE" in problem


def test_the_sandboxs_key_counts_nowhere_else(merchant):
    """Everybody knows it: towards another gateway it is refused by name, and never the default."""
    from recon.desk.held_keys import private_text, public_text

    assert SANDBOX_KEYS.private is not None
    known = merchant.folder / "known.key"
    known.write_text(private_text(SANDBOX_KEYS.private))
    known.chmod(0o600)
    merchant.variables["RECON_GATEWAY_BASE_URL"] = "https://gateway.example"
    with merchant.environment() as environment:
        assert environment.desk == NO_KEYS
    for name, text in (
        ("RECON_DESK_KEY_FILE", private_text(SANDBOX_KEYS.private)),
        ("RECON_DESK_PUBLIC_KEY_FILE", public_text(SANDBOX_KEYS.private.public_key())),
    ):
        known.write_text(text)
        with (
            pytest.raises(ConfigurationError, match="which everybody knows"),
            merchant.environment(**{name: str(known)}),
        ):
            pass


def test_one_yes_is_one_movement(begun):
    """What was sent is not sent again under the same two words, whatever the tables say."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
    merchant.night()
    assert [row["amount"] for row in merchant.effects()] == ["1.00"]
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(update(instruction).values(state="approved"))
        (item,) = instruction_rows.find(connection, state=(InstructionState.APPROVED,))
        told = {"from": "in_flight"}
        event = Event("instruction", item.instruction_id, "approved", told)
        append(connection, [event], at=environment.clock())
    merchant.move_money()

    assert [row["amount"] for row in merchant.effects()] == ["1.00"]
    assert "was confirmed" in settled(merchant)


def test_a_first_word_that_ran_out_is_no_half(begun):
    """A word of months ago and an honest first word of today are not two people who agreed."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        stop_sending(by="Jo", reason="looks wrong", environment=environment)
        why = "it was looked at"
        for name in ("jo", "kim"):
            person = identify(name, code=None, environment=environment)
            assert not allow_sending(person=person, reason=why, environment=environment)
            merchant.now += timedelta(days=9)
        with environment.store.writing() as connection:
            sending_rows.turn_switch(
                connection, stop=False, by=BOTH, reason=why, at=environment.clock()
            )
            told = endorsement_rows.start_problem(connection, environment.desk)
    assert "sending was allowed again, but" in told


@pytest.fixture
def live_desk(merchant, keyed):
    """A desk towards a gateway that is not on this machine, and anna with a code."""
    declare(merchant)
    merchant.variables |= keyed | {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with merchant.environment() as opened:
        yield opened


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_desk_whose_approvers_others_can_change_hears_nobody(merchant, live_desk, mode):
    """By name and with the command that closes it; not so at the sandbox."""
    path = merchant.folder / "config" / "approvers.toml"
    refuse_open_files(live_desk)
    path.chmod(mode)
    word = ReleaseHold(hold="r1", reason="x")
    with pytest.raises(ConfigurationError, match=r"approvers\.toml says who may decide"):
        submit(word, who=("anna", None), context=ActContext(live_desk, drawings))
    merchant.variables["RECON_GATEWAY_BASE_URL"] = merchant.sandbox.base_url
    with merchant.environment() as sandbox:
        refuse_open_files(sandbox)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_file_of_somebody_else_says_nobody(merchant, live_desk):
    """Whoever owns it can change it, whatever its mode."""
    os.chown(merchant.folder / "config" / "approvers.toml", 4242, -1)
    with pytest.raises(ConfigurationError, match=r"approvers\.toml says who may decide"):
        refuse_open_files(live_desk)


def test_the_nights_database_does_not_forget_guesses_for_anybody(merchant, live_desk):
    """Wrong and used codes stand in the desk's own file: deleting rows gives no new try."""
    right = code_of(merchant)
    identify("anna", code=right, environment=live_desk)
    for _ in range(WRONG_CODES_MAX):
        with pytest.raises(UsageError, match="is not right"):
            identify("anna", code=SecretStr("1"), environment=live_desk, origin="login 7")
    merchant.as_owner(delete(wrong_code), delete(used_code))
    with pytest.raises(UsageError, match="wait, then try again"):
        identify("anna", code=SecretStr("1"), environment=live_desk, origin="login 7")
    with pytest.raises(UsageError, match="was used before"):
        identify("anna", code=right, environment=live_desk)
    assert (live_desk.desk.codes.stat().st_mode & 0o777) == 0o600
    with closing(sqlite3.connect(live_desk.desk.codes)) as book:
        assert book.execute("SELECT count(*) FROM wrong_code").fetchone() == (WRONG_CODES_MAX,)


def speak(environment, name):
    """The yes of one person to all that waits."""
    yes = Approve(list_digest=waiting(environment).approvals.digest)
    submit(yes, who=(name, None), context=ActContext(environment, drawings))


def test_a_database_without_any_word_is_missed(begun, keyed):
    """Who takes all words away is noticed by the next one."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        speak(environment, "jo")
        merchant.as_owner(delete(endorsement))
        with pytest.raises(UsageError, match="the database lacks it"):
            speak(environment, "kim")
        assert go_on_restored(environment) == 1
        assert go_on_restored(environment) == 0
        with environment.store.reading() as connection:
            assert list(Endorsed(environment.desk).statements(connection)) == []


def reported_no(merchant, keyed):
    """Two people said yes, and one of them no before a night came; then the no is taken away."""
    merchant.variables |= keyed
    with merchant.environment() as environment:
        ids = tuple(one.instruction_id for one in waiting(environment).approvals.items)
        speak(environment, "jo")
        speak(environment, "kim")
        merchant.as_owner("UPDATE instruction SET state = 'planned'")
        no = RejectInstructions(instructions=ids, reason="not meant")
        submit(no, who=("kim", None), context=ActContext(environment, drawings))
    merchant.variables |= {"RECON_DESK_KEY_FILE": ""}


def unguard(merchant):
    """The history without what refuses changes, as its owner can make it."""
    if merchant.variables["RECON_DATABASE_URL"].startswith("sqlite:"):
        merchant.as_owner("DROP TRIGGER history_no_delete", "DROP TRIGGER history_no_update")
    else:
        merchant.as_owner("ALTER TABLE history DISABLE TRIGGER USER")


def forget_no(merchant):
    """The newest word and every link since it, as if it had never been said; the chain closes."""
    unguard(merchant)
    merchant.as_owner(
        "DELETE FROM endorsement WHERE sequence = 3",
        "DELETE FROM history WHERE sequence >= "
        "(SELECT min(sequence) FROM history WHERE event = 'withdrawn')",
        "UPDATE instruction SET state = 'approved'",
    )


def test_a_night_misses_the_newest_word_by_its_link(begun, keyed):
    """A deleted rejection stops the night that comes before anybody speaks again."""
    merchant = begun(wait_for_two)
    reported_no(merchant, keyed)
    merchant.as_owner(delete(endorsement).where(endorsement.c.sequence == 3))
    with merchant.environment() as environment, environment.store.reading() as connection:
        assert "endorsement 3 is gone" in Endorsed(environment.desk).taken_away(connection)
        assert any(
            "endorsement 3 is missing" in one
            for one in unendorsed(connection, environment=environment)
        )
    merchant.move_money()

    assert merchant.effects() == []
    assert settled(merchant) != ""


def test_the_desk_misses_a_word_from_among_the_others(begun, keyed):
    """A deleted rejection is noticed by the next person who speaks, not only by the next night."""
    merchant = begun(wait_for_two)
    reported_no(merchant, keyed)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        stop_sending(by="Jo", reason="looks wrong", environment=environment)
        speak_up(environment, "jo")
        merchant.as_owner(delete(endorsement).where(endorsement.c.sequence == 3))
        with pytest.raises(UsageError, match="endorsement 3 is gone"):
            speak_up(environment, "kim")
        assert sending_stopped(environment) is not None


def speak_up(environment, name):
    """One person's word that sending may go on."""
    go_on = ReleaseHold(hold="sending", reason="it was looked into")
    submit(go_on, who=(name, None), context=ActContext(environment, drawings))


def test_a_night_misses_a_word_that_is_gone_with_its_links(begun, keyed):
    """Where history and head files were cut as well, the desk's published memory says so."""
    merchant = begun(wait_for_two)
    reported_no(merchant, keyed)
    forget_no(merchant)
    (merchant.folder / "reports" / "history-head.jsonl").unlink()
    with merchant.environment() as environment:
        told = lost_endorsement(environment.desk, store=environment.store)
    assert "signed decision 3, and the database lacks it" in told
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
    with merchant.environment() as environment:
        assert gate_of(run, environment=environment).closed_because
    merchant.move_money()

    assert merchant.effects() == []


def test_words_of_another_database_count_in_none(begun, keyed):
    """Rows of another database with one desk's signature are nobody's word here."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        speak(environment, "jo")
        unguard(merchant)
        merchant.as_owner("UPDATE history SET hash = 'x' WHERE sequence = 1")
        with environment.store.reading() as connection:
            words = Endorsed(environment.desk)
            assert list(words.statements(connection)) == []
            assert "it was said in another database" in next(words.broken(connection))


def test_night_and_desk_name_one_database_alike():
    """Their logins differ; a memory under another name would never be looked at."""
    names = {
        name_of(Store(parse_url(f"postgresql://{login}@db:5432/recon?connect_timeout=3")))
        for login in ("recon_desk:a", "recon_night:b", "recon_night")
    }
    assert names == {"postgresql://db:5432/recon"}


def test_after_a_new_key_an_approval_lapses_and_is_said_anew(begun, tmp_path):
    """What the old key signed counts for nothing, and holds nothing up for ever either."""
    merchant = begun(wait_for_two)
    merchant.variables |= desk_with_keys(tmp_path / "old")
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
    merchant.variables |= desk_with_keys(tmp_path / "new")
    merchant.wait(hours=24 * 7)
    merchant.move_money()
    lapsed = merchant.instruction_states()
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
    merchant.move_money()

    assert set(lapsed) == {"planned"}
    assert merchant.instruction_states().get("confirmed") == lapsed["planned"]


@pytest.mark.parametrize(
    "junk", [{"at": "yesterday"}, {"says": {}}, {"says": ["a"]}], ids=["instant", "role", "says"]
)
def test_a_row_of_the_desk_that_is_none_ends_no_night(begun, junk):
    """Whoever can write to the database; the night ends, and `recon verify` names the row."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment, environment.store.writing() as connection:
        at, number = environment.clock(), next_sequence(connection)
        run_id = runs.finished(connection)[-1].run_id
        opened = named_database(connection, chance="00" * 16, at=at)
        terms: Any = {"kind": Kind.SIGN_OFF, "subject": run_id, "person": "x", "items": {}}
        terms |= {"says": {}, "name": "X", "role": "approver", "proven": True, "at": instant(at)}
        terms |= {"valid_until": "", "sequence": number, "nonce": "", "database": opened}
        row: Any = {"sequence": number, "kind": Kind.SIGN_OFF, "subject": run_id, "person": "x"}
        row |= {"at": at, "valid_until": None, "signature": "00" * 64, "key_id": "0" * 16}
        document = canonical(Endorsement(**terms | junk))
        connection.execute(insert(endorsement).values(**row, document=document))
    merchant.night()
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems

    assert [each for each in problems if each.startswith(f"endorsement {number}: ")]
