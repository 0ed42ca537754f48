"""Each test can fail: it expects something, and nothing stands in for the wire."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXPECTING_WORDS = ("assert", "raises(", "pytest.fail(")


def from_root(path):
    """The path as people name it."""
    return str(path.relative_to(ROOT))


def imported_names(tree):
    """Dotted names of all that a file imports: `a.b` and `a.b.c` of `from a.b import c`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def unprovable_tests(path, tree):
    """Tests without an expectation, their own or that of a function they call."""
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    expecting = {name for name, node in functions.items() if _expects(node)}
    for name, node in functions.items():
        if not name.startswith("test_") or name in expecting:
            continue
        called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
        if not called & expecting:
            yield f"{path}:{node.lineno} {name} expects nothing"


def _expects(node):
    text = ast.unparse(node)
    return any(word in text for word in EXPECTING_WORDS)


def mocked_modules(tree):
    """Libraries that replace the wire; what a test of money must show happens on it."""
    roots = {name.partition(".")[0] for name in imported_names(tree)}
    return roots & {"respx", "pytest_httpx", "responses", "pytest_mock"} | (
        imported_names(tree) & {"unittest.mock", "httpx.MockTransport"}
    )


def test_every_test_expects_something():
    found = [
        sentence
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for sentence in unprovable_tests(from_root(path), ast.parse(path.read_text("utf-8")))
    ]

    assert found == [], "\n".join(found)


def test_no_test_replaces_the_wire():
    mocked = {
        from_root(path): mocked_modules(ast.parse(path.read_text("utf-8")))
        for path in sorted((ROOT / "tests").rglob("*.py"))
    }

    assert {path: names for path, names in mocked.items() if names} == {}


def test_a_mock_of_the_wire_is_found():
    assert mocked_modules(ast.parse("from unittest.mock import Mock")) == {"unittest.mock"}
    assert mocked_modules(ast.parse("from httpx import MockTransport")) == {"httpx.MockTransport"}
    assert mocked_modules(ast.parse("import respx.router")) == {"respx"}


def test_a_test_that_expects_nothing_is_found():
    text = """
def expect_total(): assert 1
def test_empty(): total()
def test_by_call(): expect_total()
"""

    assert list(unprovable_tests("t.py", ast.parse(text))) == ["t.py:3 test_empty expects nothing"]
