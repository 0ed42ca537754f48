"""Words of people through the desk's own process: its secrets and key are nowhere else."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pyotp
import pytest
from pydantic import SecretStr

from recon.acts import (
    DESK_ACTS,
    ActContext,
    Approve,
    DismissRow,
    Done,
    OneName,
    ReadAgain,
    ReleaseHold,
    ReopenMonth,
    SignOff,
    act_of,
    carry_out,
    perform,
    submit,
)
from recon.desk.held_keys import make_keys
from recon.model.errors import UsageError
from recon.steps.money.approve import waiting
from recon.steps.runtime.environment import system_clock
from recon.steps.runtime.identity import identify
from reports.workbook_io import drawings
from tests.recon.steps.people import declared

SECRETS = {"jo": pyotp.random_base32(), "kim": pyotp.random_base32()}
PEOPLE = declared(jo="Jo Ahn", kim="Kim Bell", limit="EUR = 1000000", codes=True)


CARD = "card 4111 1111 1111 1111"
OF_FILES = sorted(act for act, model in DESK_ACTS.items() if not model.moves_money)


def wait_for_two(merchant):
    """A refund of 1.00 that nobody has approved, and two people with codes."""
    merchant.refund_for_two(PEOPLE)


@contextmanager
def served(merchant, folder):
    """`recon serve desk` as a process; afterwards the merchant has the public key alone."""
    make_keys(folder / "desk.key", public=folder / "desk.pub")
    path = folder / "desk.sock"
    secret = {f"CODE_{short.upper()}": key for short, key in SECRETS.items()}
    own = {k: v for k, v in merchant.variables.items() if k != "RECON_SIGN_KEY"}
    variables = own | secret | {"RECON_DESK_KEY_FILE": str(folder / "desk.key")}
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("recon")), "serve", "desk", "--socket", str(path)],
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **variables},
        text=True,
    ) as process:
        assert "takes decisions" in process.stdout.readline()
        merchant.variables |= {
            "RECON_DESK_PUBLIC_KEY_FILE": str(folder / "desk.pub"),
            "RECON_DESK_SOCKET": str(path),
        }
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def code(short):
    """The code of now: the desk's clock is the machine's."""
    return SecretStr(pyotp.TOTP(SECRETS[short]).at(int(system_clock().timestamp())))


def test_two_people_speak_through_the_desk(begun, tmp_path_factory):
    """The night's process has neither secrets nor key, and what they agreed to goes."""
    merchant = begun(wait_for_two)
    with served(merchant, tmp_path_factory.mktemp("desk")), merchant.environment() as environment:
        assert environment.desk.private is None
        context = ActContext(environment, drawings)
        yes = Approve(list_digest=waiting(environment).approvals.digest)
        with pytest.raises(UsageError, match="is not right"):
            submit(yes, who=("jo", SecretStr("0")), context=context)

        done = [submit(yes, who=(short, code(short)), context=context) for short in SECRETS]
    merchant.move_money()

    assert [one.ending for one in done] == ["Noted", "Approved"]
    assert "1 wrong codes were given in your name" in done[0].warnings[0]
    assert [row["amount"] for row in merchant.effects()] == ["1.00"]


def test_only_words_about_files_are_anybodys_at_a_sandbox_without_people():
    """Everything else is said by a declared person."""
    assert OF_FILES == ["dismiss-file", "read-again"]


@pytest.mark.parametrize("act", OF_FILES)
def test_nobody_speaks_of_files_where_people_are_declared(begun, act):
    """Once people are declared, a free name says nothing of a file."""
    with (
        begun(wait_for_two).environment() as environment,
        pytest.raises(UsageError, match="declares no 'eve'"),
    ):
        carry_out(act, {"person": "eve"}, origin="", context=ActContext(environment, drawings))


@pytest.mark.parametrize("act", sorted({*DESK_ACTS} - {*OF_FILES}))
def test_nobody_says_anything_without_being_somebody(merchant, act):
    """Every act proves who speaks before anything else."""
    with (
        merchant.environment() as environment,
        pytest.raises(UsageError, match="declares no 'eve'"),
    ):
        carry_out(act, {"person": "eve"}, origin="", context=ActContext(environment, drawings))


@pytest.mark.parametrize(
    ("act", "body"),
    [
        ("approve", {"list_digest": 1}),
        ("approve", {"list_digest": "a" * 5_000}),
        ("approve", {"list_digest": ""}),
        ("approve", {"list_digest": "0" * 16, "more": "x"}),
        ("reject", {"reason": "x" * 5_000, "instructions": ["i1"]}),
        ("reject", {"reason": "nobody named anything"}),
        ("release", {"person": 1}),
        ("approve", {"list_digest": "0" * 16, "instructions": "abc"}),
        ("approve", {"list_digest": "0" * 16, "instructions": [1]}),
        ("approve", {"write_off": "one"}),
        ("approve", {"write_off": 1, "list_digest": "0" * 16}),
        ("approve", {}),
        ("dismiss", {"row": "one", "reason": "not ours"}),
        ("import", {"file_name": "a.xlsx", "content": "?"}),
        ("everything", {}),
    ],
)
def test_what_is_no_word_is_refused(merchant, act, body):
    """With a sentence, whatever came over the socket."""
    people = '[approvers.jo]\nname = "Jo Ahn"\n'
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    with merchant.environment() as environment:
        assert identify("jo", code=None, environment=environment).short == "jo"
        with pytest.raises(UsageError):
            carry_out(
                act, {"person": "jo", **body}, origin="", context=ActContext(environment, drawings)
            )


class Counted(OneName):
    """An act that says what it saw."""

    act = "counted"
    text: str

    def done(self, name, environment):
        """Nothing but its own words."""
        return Done(sentence=f"{name}: {self.text} {environment.settings.accounts.keys()}")


def test_what_is_said_is_shown_before_the_code_is_asked(merchant):
    """A person sees what they put their name under, then types their code, then hears of it."""
    told: list[str] = []

    class Shown(Counted):
        def completed(self, _context, show):
            show("it is about this")
            return self.model_copy(update={"text": "completed"})

    def asked():
        told.append("the code is asked")
        return SecretStr("1")

    with merchant.environment() as environment:
        context = ActContext(environment, drawings)
        perform(Shown(text="as given"), name="jo", code=asked, context=context, show=told.append)
        with pytest.raises(UsageError, match="say who you are"):
            perform(Shown(text="x"), name=" ", code=asked, context=context, show=told.append)

    assert told[:2] == ["it is about this", "the code is asked"]
    assert told[2].startswith("jo: completed")
    assert len(told) == 3


@pytest.mark.parametrize(
    ("model", "fields", "words"),
    [
        (SignOff, {"run_id": "r1"}, "role: is missing"),
        (DismissRow, {"row": "x", "reason": "y"}, "row: must be a whole number"),
        (SignOff, {"run_id": "r1", "role": "boss"}, "role: must be 'reviewer' or"),
        (ReopenMonth, {"month": "2026-13", "reason": "why"}, "month: is not written as it must be"),
        (ReopenMonth, {"month": "2026-12", "reason": "4111" * 2_000}, "reason: has more than"),
        *(
            (model, fields, f"{field}: holds a card number; say it without the number")
            for model, fields, field in (
                (ReopenMonth, {"month": "2026-12", "reason": CARD}, "reason"),
                (ReleaseHold, {"hold": "sending", "reason": CARD}, "reason"),
                (DismissRow, {"row": "1", "reason": CARD}, "reason"),
                (ReadAgain, {"file": "a.csv", "reason": CARD}, "reason"),
            )
        ),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(model, fields, words):
    """Field and reason; a value may be private."""
    with pytest.raises(UsageError) as refused:
        act_of(model, fields)

    assert str(refused.value).startswith(words)
    assert "4111" not in str(refused.value)
