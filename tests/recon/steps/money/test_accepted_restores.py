"""Two people accept what is lost, and nothing else: no old word, no line in a head file."""

import json
from pathlib import Path
from typing import Any

import pytest

from recon.steps.care.verify import verify
from recon.steps.ground.environment import Environment
from recon.steps.money.gate import gate_of
from recon.store.database.history import Event, append
from recon.store.database.outside_heads import ACCEPTED_RESTORE, HeadFile
from recon.store.nights import runs
from tests.recon.steps.money.test_restore import UNREAD, accept, lose

REPLAYED = {"by": "Jo Ahn and Kim Bell", "reason": "for me", "instructions": 0}

pytestmark = pytest.mark.xdist_group("restored databases")


@pytest.fixture
def restored(begun: Any) -> Any:
    """A merchant who lost a night's database."""
    return begun(lose)


def closed(environment: Environment) -> str:
    """Why the gate is closed."""
    with environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
    assert run is not None
    return gate_of(run, environment=environment).closed_because


def noted_elsewhere(reports: Path) -> None:
    """What the newer database noted after somebody had spoken."""
    path = reports / "history-head.jsonl"
    newest = json.loads(path.read_text().splitlines()[-1])
    more = newest | {"sequence": newest["sequence"] + 1, "hash": "e" * 64}
    with path.open("a") as file:
        file.write(json.dumps(more) + "\n")


def forge(environment: Environment, reports: Path, **data: object) -> None:
    """An acceptance with the night's login and files alone."""
    with environment.store.writing() as connection:
        event = Event("database", "database", ACCEPTED_RESTORE, {**REPLAYED, **data})
        head = append(connection, [event], at=environment.clock())
    HeadFile(reports).note(lambda: head, of=ACCEPTED_RESTORE, at=environment.clock())


def test_what_two_people_accept_opens_the_gate(restored: Any) -> None:
    """And `recon verify` finds nothing in it."""
    with restored.environment() as environment:
        assert "it is a backup that was restored" in closed(environment)
        before = verify(environment, reading=UNREAD).problems
        assert any("is older than the archive" in one for one in before)
        assert accept(environment, "jo", "kim") == [None, 0]
        assert closed(environment) == ""
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if "accepted" in one or "older than" in one] == []


def test_a_word_about_one_restore_is_good_for_no_other(restored: Any) -> None:
    """Where more was lost meanwhile, the second person's word is a first one about that."""
    with restored.environment() as environment:
        assert accept(environment, "jo") == [None]
        noted_elsewhere(restored.folder / "reports")
        assert accept(environment, "kim") == [None]
        assert "it is a backup that was restored" in closed(environment)
        assert accept(environment, "jo") == [0]


def test_a_line_in_a_head_file_is_nobodys_word(restored: Any) -> None:
    """Whoever has the night's login and files accepts nothing."""
    with restored.environment() as environment:
        forge(environment, restored.folder / "reports")
        assert "counts as accepted, but the desk endorsed it for nobody" in closed(environment)
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if "counts as accepted" in one]


def test_true_words_about_one_loss_cover_no_other(restored: Any) -> None:
    """The same words under a later loss close the gate: the head file has another link there."""
    reports = restored.folder / "reports"
    with restored.environment() as environment:
        accept(environment, "jo", "kim")
        with environment.store.reading() as connection:
            (told,) = [
                json.loads(row["data"])
                for row in connection.exec_driver_sql("SELECT * FROM history").mappings()
                if row["event"] == ACCEPTED_RESTORE
            ]
        noted_elsewhere(reports)
        forge(environment, reports, lost=told["lost"], after=told["after"])
        assert "nobody accepted that it is lost" in closed(environment)
