import hashlib
import io
import os
from types import SimpleNamespace

import pytest

from recon import acts
from recon.cli import people_commands
from recon.cli.commands import main
from recon.model.errors import UsageError


@pytest.fixture
def folder(installation, monkeypatch):
    """An installation, and nobody at the keyboard."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return installation


@pytest.mark.usefixtures("folder")
def test_nothing_waits_is_said(capsys):
    assert main(["approve"]) == 0
    assert "No instruction waits for approval." in capsys.readouterr().out


def test_a_list_of_nights_leaves_out_days_on_which_none_is_due(folder, capsys):
    (folder / "config" / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\ninbox = "/i"\nreports = "/r"\n'
    )
    assert main(["nights", "--from", "2026-01-09", "--to", "2026-01-12"]) == 4

    lines = capsys.readouterr().out.splitlines()
    told = [line.split(",")[0] for line in lines]
    assert told == [f"100042/100042001 2026-01-{day}: missing" for day in ("09", "12")]


@pytest.mark.usefixtures("folder")
def test_a_name_is_needed_to_say_yes(capsys):
    assert main(["approve", "--list", "0" * 16]) == 2
    assert "--as" in capsys.readouterr().err


def test_an_enrolled_secret_is_shown_once_and_kept_nowhere(folder, capsys):
    assert main(["enrol", "anna"]) == 0

    secret = capsys.readouterr().out.split("Secret: ")[1].split()[0]
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert len(secret) == 32
    assert not any(secret.encode() in path.read_bytes() for path in kept)
    assert secret not in "".join(os.environ.values())


def test_a_desk_gets_its_key_and_goes_on_after_a_restore(folder, monkeypatch, capsys):
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "https://gateway.example")
    for words in (["enrol"], ["enrol", "anna", "--desk", str(folder)]):
        assert main(words) == 2
    assert "name one person, or the folder" in capsys.readouterr().err
    assert main(["serve", "desk", "--restored"]) == 2
    assert "no key of the desk" in capsys.readouterr().err
    assert main(["enrol", "--desk", str(folder)]) == 0
    monkeypatch.setenv("RECON_DESK_KEY_FILE", str(folder / "desk.key"))
    assert main(["serve", "desk", "--restored"]) == 0
    assert "every decision that this desk knows" in capsys.readouterr().out
    assert main(["serve", "desk"]) == 2
    assert "say where the desk listens" in capsys.readouterr().err
    assert main(["enrol", "--desk", str(folder)]) == 2


def test_a_workbook_is_named_before_the_code_is_typed(folder, capsys, monkeypatch):
    """What goes to the desk is the file that was shown, whoever swaps it during the typing."""
    workbook, told = folder / "w.xlsx", []
    workbook.write_bytes(b"looked at")
    shown = hashlib.sha256(b"looked at").hexdigest()

    def typed(*_, **__):
        workbook.write_bytes(b"swapped")

    def desk(word, **_):
        told.append(word.model_dump())
        refused = "heard"
        raise UsageError(refused)

    monkeypatch.setattr(people_commands, "code_of", typed)
    monkeypatch.setattr(acts, "submit", desk)
    monkeypatch.setattr(acts, "run_named", lambda _connection, name: SimpleNamespace(run_id=name))
    words = ["sign-off", "r1", "--role", "reviewer", "--as", "dan", "--workbook", str(workbook)]

    assert main(words) == 2
    assert told == [{"run_id": "r1", "role": "reviewer", "workbook_sha256": shown}]
    assert f"You looked at: {workbook}, SHA-256 {shown}" in capsys.readouterr().out
    workbook.unlink()
    assert main(words) != 0
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        (["approve", "--list", "0" * 16], "0" * 16),
        (["resolve", "i1"], "i1"),
        (["sign-off", "r1"], "r1"),
        (["approve", "--hold", "r1"], "r1"),
        (["approve", "--hold", "sending"], "allow-sending"),
        (["approve", "--hold", "restore"], "accept-restore"),
        (["approve", "--hold", "spill/a.json"], "set-file-aside"),
    ],
)
def test_a_word_is_taken_back_by_the_command_that_says_it(folder, words, subject, capsys):
    (folder / "config" / "approvers.toml").write_text('[approvers.jo]\nname = "Jo Ahn"\n')

    assert main([*words, "--take-back", "--as", "jo"]) == 2
    assert f"Jo Ahn decided nothing on {subject} that waits" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reject", "--row", "7", "--reason", "no order of ours"], "no rejected row 7"),
        (["reject", "--file", "a.csv", "--reason", "no order of ours"], "has met a file a.csv"),
        (["reject", "i1", "--file", "a.csv", "--reason", "not ours"], "instructions"),
        (["reject", "--row", "7", "--file", "a.csv", "--reason", "not ours"], "row"),
        (
            ["approve", "--hold", "sending", "--list", "0" * 16, "--reason", "a drill"],
            "list_digest",
        ),
        (["approve", "--hold", "sending"], "reason"),
    ],
)
def test_a_command_of_several_acts_takes_one_at_a_time(folder, words, said, capsys):
    (folder / "config" / "approvers.toml").write_text('[approvers.jo]\nname = "Jo Ahn"\n')
    (folder / "config" / "merchants.toml").write_text(
        f'[accounts."1/2"]\ninbox = "{folder}"\nreports = "{folder}"\n'
    )

    assert main([*words, "--as", "jo"]) == 2
    assert said in capsys.readouterr().err
