"""How a command gets a one-time code: asked for or from its input, never seen by another login."""

import io
from datetime import UTC, datetime

import pyotp
import pytest

from recon.cli.commands import main
from recon.desk.held_keys import make_keys
from tests.recon.cli.typed_commands import commands

SECRET = pyotp.random_base32()
PLACE = ["--merchant", "100042", "--account", "100042001"]
WHY = ["--reason", "it was a drill"]
WORDS = {
    "approve": ["--list", "0" * 16],
    "reject": ["i1", *WHY],
    "resolve": ["i1", "--verdict", "applied", "--evidence", "seen in the portal"],
    "sign-off": ["r1", "--role", "reviewer"],
    "order-file check": ["a.csv", *PLACE, "--again", "it was a drill"],
    "import-resolutions": ["a.xlsx"],
    "close": ["2026-11", "--sign", "reviewer", *PLACE],
}
"""Command -> what it needs beside name and code."""


@pytest.fixture
def live(installation, monkeypatch):
    """A desk in this process and one person, towards a gateway that is not on this machine."""
    (installation / "config" / "approvers.toml").write_text(
        '[approvers.jo]\nname = "Jo Ahn"\ncode_secret_env = "JO_SECRET"\n'
    )
    (installation / "a.xlsx").write_bytes(b"no workbook")
    monkeypatch.chdir(installation)
    monkeypatch.setenv("JO_SECRET", SECRET)
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "https://gateway.example")
    monkeypatch.setenv("RECON_DESK_KEY_FILE", str(installation / "desk.key"))
    return make_keys(installation / "desk.key", public=installation / "desk.pub")


def now():
    return pyotp.TOTP(SECRET).at(datetime.now(UTC))


def test_these_are_all_commands_that_take_a_code():
    taking = (
        words for words, each in commands() if any("--code" in one.opts for one in each.params)
    )
    assert sorted(taking) == sorted(WORDS)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("command", WORDS)
def test_towards_a_live_gateway_no_code_stands_on_a_command_line(command, capsys):
    """Every login of the machine reads it in /proc; it is refused before anybody looks at it."""
    assert main([*command.split(), *WORDS[command], "--as", "jo", "--code", now()]) == 2
    assert "can be read by everybody on this machine" in capsys.readouterr().err


@pytest.mark.usefixtures("live")
def test_a_code_is_read_from_the_input(monkeypatch, capsys):
    code, words = now(), ["reject", "i1", *WHY, "--as", "jo", "--code", "-"]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{code}\nmore"))
    assert main(words) == 2
    assert "code" not in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO(code))
    assert main(words) == 2
    assert "was used before" in capsys.readouterr().err


@pytest.mark.usefixtures("live")
def test_an_empty_input_is_no_code(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["reject", "i1", *WHY, "--as", "jo", "--code", "-"]) == 2
    assert "which is empty" in capsys.readouterr().err


def test_the_sandbox_takes_a_code_from_the_command_line(live, monkeypatch, capsys):
    assert live
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:9")
    assert main(["reject", "i1", *WHY, "--as", "jo", "--code", now()]) == 2
    assert "code" not in capsys.readouterr().err
