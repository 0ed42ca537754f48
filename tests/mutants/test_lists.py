"""The lists of mutants stay true while the code changes; how they are drawn."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.drawing import changes_of

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SCENARIOS = "tests/scenarios"
LISTED = [
    pytest.param(mutant, id=f"{path.stem}-{number}")
    for path in sorted(HERE.glob("*.toml"))
    for number, mutant in enumerate(tomllib.loads(path.read_text("utf-8"))["mutant"])
]
MODULE = """
def due(at, *, now, waits):
    if at <= now and not waits:
        found.append(at - now)
    return len(found) == 1
"""


@pytest.mark.parametrize("mutant", LISTED)
def test_a_listed_mutant_fits_its_file(mutant):
    """What it changes stands there once: a line that was rewritten wants its mutant again."""
    text = (CHECKOUT / mutant["file"]).read_text("utf-8")

    assert text.count(mutant["was"]) == 1
    assert mutant["was"] != mutant["becomes"]


@cache
def names_in(file):
    """The names of all tests that stand in a file."""
    path = CHECKOUT / file
    tree = ast.parse(path.read_text("utf-8") if path.is_file() else "")
    return frozenset(one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))


@pytest.mark.parametrize("mutant", LISTED)
def test_who_notices_a_listed_mutant_is_a_test(mutant):
    """Its file and function, and of a scenario the folder; else a reason why nobody needs to."""
    file, _, name = mutant.get("noticed_by", "").partition("::")
    function, _, case = name.removesuffix("]").partition("[")

    assert function in names_in(file) or "survives" in mutant
    assert not file.startswith(SCENARIOS) or (CHECKOUT / SCENARIOS / case).is_dir()


def test_each_change_is_one_change_of_one_place():
    """Bounds, conditions, signs, what is written down: one after the other."""
    assert {becomes.strip() for _, becomes in changes_of(MODULE)} == {
        "if at <= now:",
        "if at < now and not waits:",
        "if at <= now and waits:",
        "pass",
        "found.append(at + now)",
        "return len(found) != 1",
        "return len(found) == 2",
    }
