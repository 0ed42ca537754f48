"""What `recon doctor` says: each trouble fails its own line, in words that say what to do."""

import random
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recon.config.settings import load_settings
from recon.desk.held_keys import make_keys
from recon.model.errors import ConfigurationError
from recon.steps.care import doctor
from recon.steps.care.doctor import Check, checks, desk_told
from recon.steps.ground.environment import CLOCK_VARIABLE, system_clock
from recon.steps.money.gate import stop_sending
from recon.store.database.engine import open_store

LINES = {
    *("configuration", "database", "sending", "codes", "notifications", "replies", "limits"),
    *("sign", "approvers", "desk", "cluster", "notices", "clock", "disk", "permissions"),
    *("inbox", "reports", "ledger", "history", "facts", "closed", "nights", "gateway"),
}
REAL = {"RECON_SIGN_KEY": "of real money"}
ANNA_AND_BEN = (
    '[approvers.anna]\nname = "Anna"\ncode_secret_env = "RECON_CODE_ANNA"\n'
    '[approvers.ben]\nname = "Ben"\n'
)
LIMIT = "[limits.EUR]\nitem = 10\n"
Harm = Callable[[Any], None]


def found(merchant: Any, **variables: str) -> dict[str, Check]:
    """The doctor's lines by their first word."""
    told = checks(merchant.variables | variables, clock=merchant.clock, randomness=random.Random(1))
    return {check.name.split()[0]: check for check in told}


def with_file(name: str, text: str) -> Harm:
    """Lay a text behind what a file of the configuration says."""

    def configure(merchant: Any) -> None:
        with (merchant.folder / "config" / name).open("a") as file:
            file.write(text)

    return configure


def nothing(_: Any) -> None:
    """All is well with the merchant."""


def of_older_program(merchant: Any) -> None:
    """Tables of another version."""
    merchant.sqlite_path  # noqa: B018 - a server's tables are not put back
    merchant.as_owner("UPDATE alembic_version SET version_num = '0000'")


def reports_is_a_file(merchant: Any) -> None:
    """No folder for reports."""
    shutil.rmtree(merchant.folder / "reports", ignore_errors=True)
    (merchant.folder / "reports").write_text("a file")


def stopped(merchant: Any) -> None:
    """The switch."""
    with merchant.environment() as environment:
        stop_sending(by="Otto Ops", reason="a wrong file", environment=environment)


def without_a_code(merchant: Any) -> None:
    """A code of a stored answer that rules.toml does not have any more."""
    merchant.drop("orders.csv", merchant.order(merchant.payments("authorised")[0]))
    merchant.night()
    rules = merchant.folder / "config" / "rules.toml"
    kept = [line for line in rules.read_text().splitlines() if "2000" not in line]
    rules.write_text("\n".join(kept))


def test_a_healthy_merchant_passes_every_check(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything in place each line says so, and the database is opened once."""
    opened: list[str] = []
    monkeypatch.setattr(doctor, "open_store", lambda url: (opened.append(url), open_store(url))[1])
    told = found(merchant)

    assert len(opened) == 1
    assert {*told} == LINES
    assert all(check.ok for check in told.values()), told


def test_nights_are_looked_at_by_their_own_time(merchant: Any) -> None:
    """At the demo no night is missing because today is later than its newest business date."""
    merchant.night()
    ahead = merchant.now - system_clock() + timedelta(minutes=1)
    variables = merchant.variables | {CLOCK_VARIABLE: str(int(ahead.total_seconds()))}
    answers = checks(variables, clock=system_clock, randomness=random.Random(1))
    moved = {check.name.split()[0]: check for check in answers}

    assert moved["nights"] == found(merchant)["nights"]
    assert moved["clock"].ok, moved["clock"]


@pytest.mark.parametrize(
    ("harm", "variables", "name", "says"),
    [
        (nothing, {"RECON_SIGN_KEY": ""}, "RECON_SIGN_KEY", "is not set"),
        (nothing, {"RECON_DATABASE_URL": "sqlite:////no/r.sqlite"}, "database", "does not exist"),
        (nothing, {"RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9"}, "gateway", "not be reached"),
        (nothing, {"RECON_SIGN_KEY": "wrong"}, "gateway", "sign key"),
        (nothing, {"RECON_GATEWAY_BASE_URL": "https://127.0.0.1:9/v1"}, "gateway", "ends in /v1"),
        (nothing, REAL, "limits", "every instruction waits for two people"),
        (of_older_program, {}, "database", "recon db upgrade"),
        (reports_is_a_file, {}, "reports", "reports"),
        (stopped, {}, "sending", "a wrong file"),
        (with_file("gateway.toml", "calls_per_seconds = 5\n"), {}, "configuration", "per_seconds"),
        (
            with_file("gateway.toml", 'reply_signatures = "warn"\n'),
            {},
            "replies",
            "no live night will send",
        ),
        (with_file("approvers.toml", ANNA_AND_BEN), {}, "approvers", "secret of anna"),
    ],
)
def test_what_is_wrong_fails_its_own_line_with_what_to_do(
    merchant: Any, harm: Harm, variables: dict[str, str], name: str, says: str
) -> None:
    """A missing key, folder or gateway, tables of another version, a misspelt key, a switch."""
    harm(merchant)

    check = found(merchant, **variables)[name]

    assert not check.ok
    assert says in check.sentence


@pytest.mark.parametrize(
    ("state", "variables", "name", "says"),
    [
        (nothing, {}, "replies", "^profile base, reply_signatures enforce$"),
        (nothing, {}, "limits", "^none set, and the sandbox needs none$"),
        (nothing, {}, "approvers", "nobody is declared"),
        (nothing, {}, "notifications", "^0 kept, none refused$"),
        (
            with_file("limits.toml", LIMIT),
            {},
            "limits",
            "^set for EUR; other currencies have none$",
        ),
        (
            with_file("limits.toml", LIMIT),
            REAL,
            "limits",
            "other currencies have none: what they ask for waits for two people$",
        ),
        (
            with_file(
                "gateway.toml", 'reply_signatures = "off"\nallow_unverified_replies = true\n'
            ),
            {},
            "replies",
            "forge",
        ),
        (
            with_file("approvers.toml", ANNA_AND_BEN),
            {"RECON_CODE_ANNA": "JBSWY3DPEHPK3PXP"},
            "approvers",
            "^(?!.*JBSW).*not authenticated: ben",
        ),
        (without_a_code, {}, "codes", "^not mapped: payment_status 2000;"),
    ],
)
def test_what_the_settings_promise_is_said(
    merchant: Any, state: Harm, variables: dict[str, str], name: str, says: str
) -> None:
    """What is bounded, verified, mapped or nobody's; a secret is never shown."""
    state(merchant)

    check = found(merchant, **variables)[name]

    assert check.ok
    assert re.search(says, check.sentence), check


def test_an_unregistered_address_is_named(merchant: Any) -> None:
    """A gateway that does not know our address says what to register."""
    with merchant.unregistered():
        check = found(merchant)["gateway"]

    assert not check.ok
    assert "register" in check.sentence


KEYS = {"RECON_DESK_PUBLIC_KEY_FILE": "desk.pub", "RECON_DESK_KEY_FILE": "desk.key"}
PUBLIC = {"RECON_DESK_PUBLIC_KEY_FILE": "desk.pub", "RECON_DESK_SOCKET": "desk.sock"}
CODE = {"CODE_JO": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}
APART = "the desk alone should have"


@pytest.mark.parametrize(
    ("is_live", "variables", "refused", "says"),
    [
        (False, {}, "", "which everybody knows"),
        (True, {}, "recon enrol --desk", ""),
        (True, KEYS, "", "held by this very process"),
        (True, KEYS | {"RECON_DESK_SOCKET": "none.sock"}, "no desk listens", ""),
        (True, PUBLIC | KEYS, APART, ""),
        (True, PUBLIC | CODE, APART, ""),
        (True, PUBLIC, "", "people are heard at {folder}/desk.sock"),
    ],
)
def test_the_desk_is_told_as_what_it_is(
    merchant: Any,
    tmp_path: Path,
    variables: dict[str, str],
    refused: str,
    says: str,
    *,
    is_live: bool,
) -> None:
    """Without one what waits for people would wait for ever; a night never has what is the desk's.

    A night that can read the secrets or the key could speak for people.
    """
    make_keys(tmp_path / "desk.key", public=tmp_path / "desk.pub")
    people = '[approvers.jo]\nname = "Jo Ahn"\ncode_secret_env = "CODE_JO"\n'
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    files = {name: str(tmp_path / text) for name, text in variables.items() if "CODE" not in name}
    whole = merchant.variables | variables | files
    if is_live:
        whole |= {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "desk.sock"))
        listener.listen()
        with pytest.raises(ConfigurationError, match=refused) if refused else nullcontext():
            assert says.format(folder=tmp_path) in desk_told(load_settings(whole), variables=whole)
