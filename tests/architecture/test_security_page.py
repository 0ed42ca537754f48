"""The page of security in step with the tests: each promise names those that hold it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/SECURITY.md"
PROMISES_MIN = 20
TESTS_MIN = 120
"""As many tests hold the promises together; none is dropped unnoticed."""


def promises(text: str) -> list[tuple[str, str]]:
    """The list of promises: the promise, and what stands behind it."""
    (section,) = re.findall(r"^## Promises\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("- ") for line in section.splitlines() if line.startswith("- ")]
    return [(promise, named) for promise, _, named in (line.rpartition(": ") for line in lines)]


def unheld(text: str, *, root: Path) -> Iterator[str]:
    """Promises of which a test is not there."""
    for promise, named in ((each, one) for each, of in promises(text) for one in of.split(", ")):
        found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", named)
        path = root / found[1] if found else root / "nowhere"
        if found is None or not path.is_file():
            yield f"{promise}: {named}"
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if found[2] not in {getattr(node, "name", "") for node in tree.body}:
            yield f"{promise}: {named}"


def test_every_promise_has_a_test_that_exists() -> None:
    """Who renames or removes a test changes the page, or the promise is empty."""
    text = PAGE.read_text(encoding="utf-8")

    assert list(unheld(text, root=ROOT)) == []
    assert len(promises(text)) >= PROMISES_MIN
    assert len({name for _, named in promises(text) for name in named.split(", ")}) >= TESTS_MIN


def test_a_promise_without_a_test_is_found(tmp_path: Path) -> None:
    """The rule above can fail: no file, no such test, no name at all."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("def test_b(): ...\n")
    rows = (
        "- kept: `tests/test_a.py::test_b`",
        "- half: `tests/test_a.py::test_b`, `tests/test_a.py::test_c`",
        "- gone: so: `tests/test_a.py::test_c`",
        "- lost: `tests/test_x.py::test_b`",
        "- bare: nothing",
        "- none",
    )
    text = "## Promises\n\n" + "\n".join(rows) + "\n\n## Rest\n"

    assert [found.split(":")[0] for found in unheld(text, root=tmp_path)] == [
        "half",
        "gone",
        "lost",
        "bare",
        "",
    ]
