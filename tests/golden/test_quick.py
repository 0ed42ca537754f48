"""The frozen figures that take seconds, as a part of `make check`; `make golden` plays them all."""

import pytest

from recon.model.terms import End
from tests.golden.figures import differences, frozen, told
from tests.golden.nights import DATABASES, SIZES
from tests.golden.plays import PLAYS, QUICK, of_play, play
from tests.injected import RECIPES


@pytest.mark.parametrize("name", QUICK)
def test_what_is_quick_to_play_is_as_it_was_frozen(name):
    """Requests, exit codes and machine files change only on purpose."""
    found = differences(of_play(name, frozen()), play(name))

    assert not found, told(found)


@pytest.mark.parametrize("name", PLAYS)
def test_every_play_is_frozen(name):
    """What was never frozen could change unseen."""
    assert of_play(name, frozen())


def test_every_break_code_is_among_the_machine_files():
    """A code that no planted file shows could change unseen."""
    counts = frozen()["machine files, breaks by code"]

    assert [code for code in RECIPES if int(str(counts[code.value]).split()[0]) == 0] == []


@pytest.mark.parametrize("name", ["breaks", "effects", "matches", "rejects", "unverified"])
def test_every_list_of_the_machine_files_has_rows(name):
    """A list that is frozen empty could change unseen."""
    assert int(str(frozen()[f"machine files, {name}.csv"]["rows"])) > 0


def test_every_exit_code_is_frozen():
    """Each code that a command or a night can end with stands among the frozen ones."""
    tables = frozen()
    codes = {*tables["exit codes"].values(), *tables["ends of nights"].values()}

    assert {end.exit_code for end in End} | {0, 1, 2, 75} <= codes


@pytest.mark.parametrize("size", SIZES)
def test_a_night_is_the_same_on_every_database(size):
    """The figures of SQLite and PostgreSQL are one, down to the cells and the gateway's effects."""
    first, *others = (night_on(each, size=size) for each in DATABASES)

    assert others == [first]


def night_on(database, *, size):
    """Its figures, and the digests of its sheets."""
    name = f"night of {size} orders, {database}"
    return [frozen()[name], frozen()[f"{name}, sheets"]]
