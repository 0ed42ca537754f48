"""Which scenario comes by the place of which mutant: one that never does cannot notice it.

A copy of the checkout marks, before each statement that a mutant changes, the test that is being
played; all scenarios are played in it once. What a process does once is marked for its first test.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree as ET

ANY = ""
"""Of a mark: made by the gateway's process, which serves all nights."""
MODULE = """
import contextlib
import os
import sys

SEEN = set()


def mark(name):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    test = "" if "sandbox" in sys.argv else test
    if (name, test) not in SEEN:
        SEEN.add((name, test))
        with contextlib.suppress(OSError), open(f"{folder}/{{os.getpid()}}", "a") as file:
            file.write(f"{{name}} {{test}}\\n")
"""
"""Processes of a night mark, too; one that may write nothing does not."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a mutant changes."""

    file: str
    was: str
    becomes: str

    @property
    def name(self) -> str:
        """The place's, however its mutant is written."""
        return hashlib.sha256(f"{self.file}\0{self.was}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Reach:
    """What was found when all scenarios were played once."""

    seconds: Mapping[str, float]
    """Of each scenario."""
    come_by: Mapping[str, Sequence[str]]
    """A place's name -> scenarios that come by."""

    @classmethod
    def read(cls, path: Path) -> "Reach | None":
        """As it was kept; None where it never was."""
        return cls(**json.loads(path.read_text("utf-8"))) if path.exists() else None

    def scenarios(self, change: Change) -> list[str]:
        """Those that come by, the quickest first."""
        tests = set(self.come_by.get(change.name, ()))
        tests = {*self.seconds} if ANY in tests else tests & self.seconds.keys()
        return sorted(tests, key=lambda test: (self.seconds[test], test))


def put_marks(place: Path, *, marks: Path, changes: Iterable[Change]) -> None:
    """Change a copy so that it marks in a folder who comes by."""
    marks.mkdir()
    (place / "src/recon/marks.py").write_text(MODULE.format(folder=marks), "utf-8")
    of_file: dict[str, list[Change]] = {}
    for change in (one for one in changes if one.file.endswith(".py")):  # no SQL comes by
        of_file.setdefault(change.file, []).append(change)
    for file, own in of_file.items():
        text = (place / file).read_text("utf-8")
        tree = ast.parse(text)
        for change, statement in [(one, _statement(one, text=text, tree=tree)) for one in own]:
            _mark_before(statement, tree=tree, name=change.name)
        (place / file).write_text(ast.unparse(tree), "utf-8")


def found(marks: Path, *, report: Path) -> Reach:
    """What the marks and pytest's report (JUnit XML) say."""
    come_by: dict[str, set[str]] = {}
    for file in marks.iterdir():
        for line in file.read_text("utf-8").splitlines():
            name, _, test = line.partition(" ")
            come_by.setdefault(name, set()).add(test)
    seconds = {
        f"{one.attrib['classname'].replace('.', '/')}.py::{one.attrib['name']}": float(
            one.attrib["time"]
        )
        for one in ET.parse(report).iter("testcase")  # noqa: S314 - pytest's own
    }
    return Reach(seconds, {name: sorted(tests) for name, tests in sorted(come_by.items())})


def _statement(change: Change, *, text: str, tree: ast.AST) -> ast.stmt:
    pairs = zip(change.was, change.becomes, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    line = text.count("\n", 0, text.index(change.was) + same) + 1
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)


def _mark_before(statement: ast.stmt, *, tree: ast.AST, name: str) -> None:
    marked = ast.parse(f"__import__('recon.marks').marks.mark({name!r})").body[0]
    for node in ast.walk(tree):
        for _, field in ast.iter_fields(node):
            if isinstance(field, list) and statement in field:
                field.insert(field.index(statement), marked)
                return
