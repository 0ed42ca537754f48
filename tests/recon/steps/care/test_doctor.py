import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from recon.steps.care import doctor
from recon.steps.care.doctor import Check, checks
from recon.steps.ground.environment import CLOCK_VARIABLE, system_clock
from recon.steps.money.sending import stop_sending
from recon.store.database.engine import open_store


def _found(merchant: Any, **variables: str) -> dict[str, Check]:
    told = checks(merchant.variables | variables, clock=merchant.clock, randomness=random.Random(1))
    return {check.name.split()[0]: check for check in told}


def test_a_healthy_merchant_passes_every_check(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything in place each line says so, and the database is opened once."""
    opened: list[str] = []
    monkeypatch.setattr(doctor, "open_store", lambda url: (opened.append(url), open_store(url))[1])
    found = _found(merchant)

    assert len(opened) == 1

    assert set(found) == {
        *("configuration", "database", "sending", "codes", "notifications", "replies"),
        *(
            "limits",
            "sign",
            "approvers",
            "desk",
            "cluster",
            "notices",
            "clock",
            "disk",
            "permissions",
            "inbox",
            "reports",
            "ledger",
            "history",
            "facts",
            "closed",
            "nights",
            "gateway",
        ),
    }
    assert all(check.ok for check in found.values()), found


def test_nights_are_looked_at_by_their_own_time(merchant: Any) -> None:
    """At the demo no night is missing because today is later than its newest business date."""
    merchant.night()
    ahead = merchant.now - system_clock() + timedelta(minutes=1)
    variables = merchant.variables | {CLOCK_VARIABLE: str(int(ahead.total_seconds()))}
    answers = checks(variables, clock=system_clock, randomness=random.Random(1))
    moved = {check.name.split()[0]: check for check in answers}

    assert moved["nights"] == _found(merchant)["nights"]
    assert moved["clock"].ok, moved["clock"]


@pytest.mark.parametrize(
    ("variables", "name", "words"),
    [
        ({"RECON_SIGN_KEY": ""}, "RECON_SIGN_KEY", "is not set"),
        ({"RECON_DATABASE_URL": "sqlite:////nowhere/r.sqlite"}, "database", "does not exist"),
        ({"RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9"}, "gateway", "could not be reached"),
        ({"RECON_SIGN_KEY": "wrong"}, "gateway", "sign key"),
        ({"RECON_GATEWAY_BASE_URL": "https://127.0.0.1:9/v1"}, "gateway", "ends in /v1"),
    ],
)
def test_each_trouble_is_named_with_what_to_do(
    merchant: Any, variables: dict[str, str], name: str, words: str
) -> None:
    """A missing key, folder, gateway or a wrong key fails its own line in words."""
    check = _found(merchant, **variables)[name]

    assert not check.ok
    assert words in check.sentence


def _of_older_program(merchant: Any) -> None:
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
        connection.commit()


def _misspelt(merchant: Any) -> None:
    (merchant.folder / "config" / "gateway.toml").write_text("calls_per_seconds = 5\n")


def _reports_is_a_file(merchant: Any) -> None:
    shutil.rmtree(merchant.folder / "reports", ignore_errors=True)
    (merchant.folder / "reports").write_text("a file")


def _stopped(merchant: Any) -> None:
    with merchant.environment() as environment:
        stop_sending(by="Otto Ops", reason="a wrong file", environment=environment)


@pytest.mark.parametrize(
    ("broken", "name", "words"),
    [
        (_of_older_program, "database", "recon db upgrade"),
        (_misspelt, "configuration", "calls_per_seconds"),
        (_reports_is_a_file, "reports", "reports"),
        (_stopped, "sending", "a wrong file"),
    ],
)
def test_what_is_broken_fails_its_own_line(
    merchant: Any, broken: Callable[[Any], None], name: str, words: str
) -> None:
    """Tables of another version, a misspelt key, no folder for reports, a switch."""
    broken(merchant)

    found = _found(merchant)

    assert name in {line for line, check in found.items() if not check.ok}
    assert words in found[name].sentence


def test_a_night_that_never_ran_fails_its_line(merchant: Any) -> None:
    """Friday's ran, Monday's did not: the doctor says which, and that something is wrong."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:2]))
    merchant.night()
    merchant.wait(hours=3 * 24 + 10)
    check = _found(merchant)["nights"]

    assert not check.ok
    assert check.sentence.startswith("No night ran for 2026-11-23: run what is missing")


def test_an_unregistered_address_is_named(merchant: Any) -> None:
    """A gateway that does not know our address says what to register."""
    with merchant.unregistered():
        check = _found(merchant)["gateway"]

    assert not check.ok
    assert "register" in check.sentence
