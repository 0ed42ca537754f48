"""That no sink of the command line shows a card number, and no name of a file ends a command."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recon.cli import main
from recon.cli.commands import ending_of
from recon.cli.output import echo_error, progress_of
from recon.model.errors import OutputError
from recon.notify import night_log

CARD = "4929-7801-6452-3877"
SHOWN = "4929-78**-****-3877"
TEXT = f"order {CARD} of caf\udce9.csv, cvv 917"
NIGHT = ("nightly", "--merchant", "1", "--account", "2", "--business-date", "2026-11-20")
MASKED = f"order {SHOWN} of caf\\xe9.csv, cvv ***"


def test_what_an_error_quotes_is_masked_where_it_is_made():
    """Terminals, logs, tables, notices and Prefect all get the sentence from there."""
    assert str(OutputError(TEXT)) == MASKED


def test_terminals_get_no_card_number(capsys):
    echo_error(TEXT)
    with progress_of(["ingest"]) as report:
        report(TEXT)
    assert capsys.readouterr().err == f"{MASKED}\n{MASKED}\n"


def test_what_is_kept_of_an_unexpected_error_is_masked(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    error = KeyError(TEXT)
    shown = ending_of(error, debug=True).sentence
    ending_of(error, debug=False)
    (kept,) = tmp_path.iterdir()
    for text in (shown, kept.read_text()):
        assert SHOWN in text
        assert CARD not in text


def test_the_log_of_nights_masks_what_it_is_told(tmp_path):
    log = tmp_path / "night.log"
    night_log.open_log({night_log.LOG_VARIABLE: str(log)})
    night_log.note(TEXT, fields={})
    night_log.open_log({})
    assert SHOWN in log.read_text()
    assert CARD not in log.read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["stop-sending", "--as", "Ann", "--reason", f"card {CARD}"],
        ["close", "2026-11", "--as", "Ann", "--reopen", f"card {CARD}"],
        ["order-file", "check", "a.csv", "--as", "Ann", f"--again=card {CARD}"],
        ["reject", "--file", "a.csv", "--as", "Ann", "--reason", f"card {CARD}"],
        [*NIGHT, "--dry-run", "--skip", f"card {CARD}"],
    ],
)
def test_a_reason_with_a_card_number_does_nothing(words, capsys):
    """It would stand in the history for ever; the number is not repeated."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert " holds a card number; say it without the number" in said
    assert CARD not in said


def test_a_name_that_is_not_utf_8_ends_no_command(tmp_path):
    (tmp_path / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\ninbox = "in"\nreports = "out"\n'
    )
    path = os.fsencode(tmp_path / "orders-caf") + b"\xe9.csv"
    Path(os.fsdecode(path)).write_text("a,b\n")
    program = b"import sys; from recon.cli import main; sys.exit(main())"
    words = [b"order-file", b"check", path, b"--merchant", b"100042"]
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-c", program, *words],
        env=os.environ | {"RECON_CONFIG_DIR": str(tmp_path), "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = ended.stdout + ended.stderr
    assert b"unexpected" not in said
    assert b"orders-caf\\xe9.csv has a name that is not UTF-8" in said
    assert ended.returncode == 1
