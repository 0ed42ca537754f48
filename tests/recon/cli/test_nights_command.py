from datetime import date

import pytest

from recon.cli import main, night_commands
from recon.cli.night_commands import echo_missed
from recon.steps.night import monitor
from recon.steps.night.monitor import Watched


@pytest.fixture
def account(installation):
    """One declared account on an empty database."""
    (installation / "config" / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\ninbox = "/i"\nreports = "/r"\n'
    )
    return installation


def _watched(*missed):
    days = tuple(date(2026, 11, day) for day in missed)
    return Watched("100042", "100042001", None, None, "", days, ())


@pytest.mark.usefixtures("account")
def test_a_monitor_gets_one_line_and_a_plugin_code(capsys):
    code = main(["nights", "--check"])
    (line,) = capsys.readouterr().out.splitlines()

    assert code == 1
    assert line == (
        "NIGHTS WARNING - 100042/100042001: no night has run yet | in_doubt=0 not_sent=0 missed=0"
    )


@pytest.mark.usefixtures("account")
def test_a_monitor_hears_of_missed_nights(capsys, monkeypatch):
    monkeypatch.setattr(monitor, "watched", lambda _: (_watched(19, 20),))
    code = main(["nights", "--check"])
    (line,) = capsys.readouterr().out.splitlines()

    assert code == 2
    assert line.startswith("NIGHTS CRITICAL - 100042/100042001: No night ran for 2026-11-19 to")
    assert line.endswith("| in_doubt=0 not_sent=0 missed=2")


def test_a_monitor_that_cannot_look_says_unknown(account, capsys):
    (account / "recon.sqlite").unlink()
    code = main(["nights", "--check"])

    assert code == 3
    assert capsys.readouterr().out.startswith("NIGHTS UNKNOWN - ")


@pytest.mark.usefixtures("account")
def test_the_next_command_tells_of_a_night_that_never_started(capsys, monkeypatch):
    monkeypatch.setattr(monitor, "watched", lambda _: (_watched(20),))

    assert main(["approve"]) == 0
    assert "100042/100042001: No night ran for 2026-11-20" in capsys.readouterr().err


@pytest.mark.usefixtures("account")
def test_status_tells_of_missed_nights_and_ends_by_them(capsys, monkeypatch):
    monkeypatch.setattr(monitor, "watched", lambda _: (_watched(20),))

    assert main(["status"]) == 4
    assert "100042/100042001: No night ran for 2026-11-20" in capsys.readouterr().out


def test_a_command_without_settings_says_nothing_of_nights(account, monkeypatch):
    (account / "recon.sqlite").unlink()
    told: list[str] = []
    echo_missed("approve", report=told.append)
    monkeypatch.setattr(monitor, "watched", lambda _: (_watched(20),))
    echo_missed("sandbox", report=told.append)

    assert told == []
    assert "sandbox" not in night_commands.REPORTED_BY
