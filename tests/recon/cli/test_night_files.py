import json
import os
import random
from datetime import date

import pytest

from recon.cli import main
from recon.model.nights import Mode, NightRequest
from recon.steps.files.ingest import ingest
from recon.steps.runtime.environment import environment_of, system_clock
from recon.store.nights import runs

PLACE = ["--merchant", "100042", "--account", "100042001"]
WHY = ["a colleague's note", "--as", "Ann"]


@pytest.fixture
def inbox(installation):
    """The inbox of a declared account, after a night met a file that it could not read."""
    folder = installation / "inbox"
    folder.mkdir()
    (installation / "config" / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\nsettle_seconds = 0\n'
        f'inbox = "{folder}"\nreports = "{installation}"\n'
    )
    (folder / "notes.csv").write_text("dear colleague;look\n")
    _ingest()
    return folder


def _ingest():
    """What a night says of the files it meets."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    chance = random.Random()
    with environment_of(os.environ, clock=system_clock, randomness=chance) as environment:
        now, run_id = environment.clock(), environment.new_id()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id=run_id, as_of=now, now=now)
        return ingest(run_id, environment=environment).sentence


def test_a_part_that_refused_a_file_ends_as_its_night_would(inbox, capsys):
    capsys.readouterr()
    codes = [main(["nightly", "--only", "ingest", *PLACE, "--business-date", "2026-11-20"])]
    last = capsys.readouterr().out.splitlines()[-1]
    (inbox / "notes.csv").unlink()
    codes.append(main(["nightly", "--only", "ingest", *PLACE, "--business-date", "2026-11-20"]))

    assert main(["nights", "--runs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.partition("run by it.\n")[2])[0]["mode"].endswith(
        "ingest alone"
    )
    assert codes == [4, 0]
    assert last == "INCOMPLETE: 1 files of inboxes were refused whole."


@pytest.mark.usefixtures("inbox")
def test_files_are_listed_and_let_go(capsys):
    assert main(["order-file", "check", *PLACE]) == 0
    before = capsys.readouterr().out
    assert main(["reject", "--file", "notes.csv", *PLACE, "--reason", *WHY]) == 0
    said = capsys.readouterr().out
    main(["order-file", "check", *PLACE])
    after = capsys.readouterr().out

    assert before.startswith("100042/100042001 2026-11-20 notes.csv (version 1, run ")
    assert "refused whole: " in before
    assert said == "Let go: notes.csv. Start the night of 2026-11-20 again.\n"
    assert "dismissed, said Ann at " in after
    assert "a colleague's note\n0 rejected rows belong" in after
    assert "somebody dismissed it" in _ingest()


@pytest.mark.usefixtures("inbox")
def test_a_file_is_noted_to_be_read_again(capsys):
    assert main(["order-file", "check", "notes.csv", *PLACE, "--again", *WHY]) == 0
    main(["order-file", "check", *PLACE])

    assert "read again, said Ann" in capsys.readouterr().out
