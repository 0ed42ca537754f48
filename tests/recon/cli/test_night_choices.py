"""How commands take a night: a date, a run, or nothing at all."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

import pytest
import typer

from recon import cli
from recon.cli.night_choices import closed_day
from recon.model.errors import ConfigurationError
from tests.recon.cli.typed_commands import commands

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLOSED = "2026-11-20"
"""The last business date that has closed then."""
OF_A_DAY = re.compile(r"business date|\bruns?\b|\bday\b", re.IGNORECASE)
WITHOUT_NIGHT: Mapping[str, str] = {"verify": "everything that is stored"}
"""Commands that take a run and mean something else without one."""


TAKING_RUNS = {
    words: command
    for words, command in commands()
    if any(
        parameter.param_type_name == "argument"
        and re.search(r"\bruns?\b", getattr(parameter, "help", None) or "")
        for parameter in command.params
    )
}


def filled(command, folder):
    """What a command needs beside its night, to do more than list."""
    needed = {
        "journals": ["--out", str(folder)],
        "sign-off": ["--role", "reviewer", "--as", "dan"],
    }
    return needed.get(command.name, [])


@pytest.mark.parametrize(
    ("now", "day"),
    [
        (datetime(2026, 11, 21, 0, 30, tzinfo=UTC), "2026-11-20"),
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "2026-11-20"),
        (datetime(2026, 11, 20, 22, 30, tzinfo=UTC), "2026-11-19"),
    ],
    ids=["after midnight of UTC", "after midnight in Berlin only", "before midnight"],
)
def test_without_a_date_it_is_the_last_day_that_has_closed(now, day, tmp_path, monkeypatch):
    (tmp_path / "rules.toml").write_text('[calendar]\ntimezone = "Europe/Berlin"\n')
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("recon.steps.runtime.environment.system_clock", lambda: now)

    assert str(closed_day()) == day
    assert str(closed_day("2026-10-01")) == "2026-10-01"


def test_where_the_sandbox_has_another_date_the_day_is_the_last_closed_there(tmp_path, monkeypatch):
    """With the demo's env in the shell `recon breaks` means the demo's night, whatever today is."""
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RECON_CLOCK_SHIFT", str(-5 * 86_400))
    monkeypatch.setattr("recon.steps.runtime.environment.system_clock", lambda: AT)

    assert closed_day() == date(2026, 11, 15)
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "https://gateway.example")
    with pytest.raises(ConfigurationError, match="moves the time of the sandbox's nights only"):
        closed_day()


@pytest.mark.parametrize("text", ["tomorrow", "20261120", "2026-W47-5", "2026-11-31", "26-11-20"])
def test_a_date_is_written_one_way(text):
    with pytest.raises(typer.BadParameter, match=f"'{text}' is not a date such as 2026-11-20"):
        closed_day(text)


def test_no_command_demands_a_business_date():
    demanded = {
        (words, parameter.name)
        for words, command in commands()
        for parameter in command.params
        if parameter.required and OF_A_DAY.search(getattr(parameter, "help", None) or "")
    }

    assert demanded == set()


@pytest.mark.parametrize("words", TAKING_RUNS)
def test_a_command_that_takes_a_run_takes_a_date_or_nothing(
    words, installation, monkeypatch, capsys
):
    monkeypatch.setattr("recon.steps.runtime.environment.system_clock", lambda: AT)
    needed = filled(TAKING_RUNS[words], installation)
    ended = {}
    for night in ((CLOSED,), ()):
        code = cli.main([*words.split(), *night, *needed])
        ended[night] = code, f"no finished night {CLOSED}" in capsys.readouterr().err

    assert ended.pop(()) == ((0, False) if words in WITHOUT_NIGHT else (2, True))
    assert set(ended.values()) == {(2, True)}
    assert len(TAKING_RUNS) >= 5


@pytest.mark.usefixtures("installation")
def test_a_span_ends_with_the_last_closed_day(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("recon.steps.runtime.environment.system_clock", lambda: AT)
    (tmp_path / "candidate.toml").touch()
    (tmp_path / "config" / "merchants.toml").write_text(
        f'[accounts."1/2"]\ninbox = "{tmp_path}"\nreports = "{tmp_path}"\n'
    )

    assert cli.main(["nights", "--rules", str(tmp_path / "candidate.toml")]) == 2
    assert f"no finished live night from {CLOSED} to {CLOSED}" in capsys.readouterr().err
    assert cli.main(["workbook", "--index", str(tmp_path)]) == 0
    assert f"nights-{CLOSED}" in capsys.readouterr().out
