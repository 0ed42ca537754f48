"""Tests stand where a reader looks for them, and each of them can fail.

A module with logic of its own is mirrored by `test_<module>.py` in the same place under tests/, or
imported by name in a test file of its package. Modules that only declare (types, constants, an
`__init__`) need none, nor do migrations: the tests of the store run them all.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIRRORED = (("src/recon", "tests/recon"), ("reports", "tests/reports"))
EXPECTING_WORDS = ("assert", "raises(", "pytest.fail(")


def has_logic(tree: ast.Module) -> bool:
    """Whether anything stands in the module that could be wrong at run time."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While)
        for node in ast.walk(tree)
    )


def imported_names(tree: ast.Module) -> set[str]:
    """Dotted names of all that a file imports: `a.b` and `a.b.c` of `from a.b import c`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def untested_modules(root: Path) -> Iterator[str]:
    """Modules with logic that no mirrored test file names."""
    for source, tests in MIRRORED:
        for path in sorted((root / source).rglob("*.py")):
            inside = path.relative_to(root / source)
            exempt = path.name == "__init__.py" or "migrations" in inside.parts
            if exempt or not has_logic(ast.parse(path.read_text("utf-8"))):
                continue
            folder = root / tests / inside.parent
            dotted = ".".join([Path(source).name, *inside.with_suffix("").parts])
            if not _is_tested(inside.stem, dotted=dotted, folder=folder):
                yield str(path.relative_to(root))


def _is_tested(stem: str, *, dotted: str, folder: Path) -> bool:
    if list(folder.glob(f"test_{stem}*.py")):
        return True
    files = [path.read_text("utf-8") for path in folder.glob("*.py")]
    return any(dotted in imported_names(ast.parse(text)) for text in files)


def unprovable_tests(path: str, tree: ast.Module) -> Iterator[str]:
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


def _expects(node: ast.AST) -> bool:
    text = ast.unparse(node)
    return any(word in text for word in EXPECTING_WORDS)


def test_every_module_with_logic_has_its_test() -> None:
    """Who changes a module finds its test by name."""
    untested = list(untested_modules(ROOT))

    assert untested == [], "\n".join(untested)


def test_a_module_without_a_test_is_found(tmp_path: Path) -> None:
    """The rule names a module that nobody tests, and is content once a test imports it."""
    (tmp_path / "src/recon/store").mkdir(parents=True)
    (tmp_path / "src/recon/store/runs.py").write_text("def hold(): ...\n")
    (tmp_path / "src/recon/store/names.py").write_text("LIMIT = 1\n")
    (tmp_path / "tests/recon/store").mkdir(parents=True)

    assert list(untested_modules(tmp_path)) == ["src/recon/store/runs.py"]

    (tmp_path / "tests/recon/store/test_all.py").write_text("from recon.store.runs import hold\n")

    assert list(untested_modules(tmp_path)) == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda p: p.name)
def test_every_test_expects_something(path: Path) -> None:
    """A test without an expectation is green for ever."""
    tree = ast.parse(path.read_text("utf-8"))

    found = list(unprovable_tests(str(path.relative_to(ROOT)), tree))

    assert found == [], "\n".join(found)


def test_a_test_that_expects_nothing_is_found() -> None:
    """The rule names the empty test, and knows an expectation behind a call."""
    text = """
def expect_total(): assert 1
def test_empty(): total()
def test_by_call(): expect_total()
"""

    assert list(unprovable_tests("t.py", ast.parse(text))) == ["t.py:3 test_empty expects nothing"]
