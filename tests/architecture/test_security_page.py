"""The page of security in step with the tests: of each promise some are named that hold it."""

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/SECURITY.md"
HELD: Mapping[str, Sequence[str]] = tomllib.loads(
    Path(__file__).with_name("promises.toml").read_text("utf-8")
)
"""The bold words of a promise -> the tests that hold it."""
PROMISES_MIN = 20
TESTS_MIN = 120
"""As many tests hold the promises together; none is dropped unnoticed."""


def promises(text):
    """The promises of the page, by their bold words (a line without any: itself)."""
    (section,) = re.findall(r"^## Promises\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^- (.*)$", section, re.MULTILINE)
    return [
        found[1].rstrip(".") if (found := re.match(r"\*\*(.+?)\*\*", line)) else line
        for line in lines
    ]


def unheld(held, *, root):
    """Promises of which a test is not there, or that name none."""
    for promise, tests in held.items():
        if not tests:
            yield promise
        for named in tests:
            found = re.fullmatch(r"(tests/[\w/]+\.py)::(test_\w+)", named)
            path = root / found[1] if found else root / "nowhere"
            if found is None or not path.is_file():
                yield f"{promise}: {named}"
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if found[2] not in {getattr(node, "name", "") for node in tree.body}:
                yield f"{promise}: {named}"


def test_every_promise_has_a_test_that_exists():
    assert promises(PAGE.read_text(encoding="utf-8")) == list(HELD)
    assert list(unheld(HELD, root=ROOT)) == []
    assert len(HELD) >= PROMISES_MIN
    assert len({name for tests in HELD.values() for name in tests}) >= TESTS_MIN


def test_a_promise_without_a_test_is_found(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("def test_b(): ...\n")
    held = {
        "kept": ["tests/test_a.py::test_b"],
        "half": ["tests/test_a.py::test_b", "tests/test_a.py::test_c"],
        "lost": ["tests/test_x.py::test_b"],
        "bare": ["nothing"],
        "none": [],
    }

    assert promises("## Promises\n\n- **A.** b\n- c\n\n## Rest\n") == ["A", "c"]
    found = [each.split(":")[0] for each in unheld(held, root=tmp_path)]
    assert found == ["half", "lost", "bare", "none"]
