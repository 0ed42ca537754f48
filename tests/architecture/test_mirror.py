"""Tests stand where a reader looks for them, and each of them can fail.

A module with logic of its own is mirrored by `test_<module>.py` in the same place under tests/, or
the tests of its package reach it through the package's own imports. A test elsewhere does not
count. Modules that only declare (types, constants, an `__init__`) need none, nor do migrations:
the tests of the store run them all.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIRRORED = (("src/recon", "tests/recon"), ("reports", "tests/reports"))
EXPECTING_WORDS = ("assert", "raises(", "pytest.fail(")


def from_root(path: Path) -> str:
    """The path as people name it."""
    return str(path.relative_to(ROOT))


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
    """Modules with logic that no test of their package reaches."""
    for source, tests in MIRRORED:
        trees = {
            dotted_name(path, source=root / source): (path, ast.parse(path.read_text("utf-8")))
            for path in sorted((root / source).rglob("*.py"))
        }
        imports = {name: imported_names(tree) & set(trees) for name, (_, tree) in trees.items()}
        for name, (path, tree) in trees.items():
            exempt = path.name == "__init__.py" or "migrations" in path.parts
            inside = path.relative_to(root / source)
            if exempt or not has_logic(tree):
                continue
            # The tests of a package may stand in its own folder for all that is below it.
            package = f"{Path(source).name}.{inside.parts[0]}" if inside.parts[1:] else ""
            folders = [root / tests / inside.parent, root / tests / inside.parts[0]]
            if not _is_tested(name, package or Path(source).name, folders, imports=imports):
                yield str(path.relative_to(root))


def dotted_name(path: Path, *, source: Path) -> str:
    """`recon.store.runs` of its file; a package's name for its `__init__`."""
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_tested(
    name: str, package: str, folders: list[Path], *, imports: Mapping[str, set[str]]
) -> bool:
    files = {path for folder in folders for path in folder.glob("*.py")}
    if any(path.name.startswith(f"test_{name.rpartition('.')[2]}") for path in files):
        return True
    # Which modules of its own package do the package's tests reach, one import after another?
    named = set[str]().union(*(imported_names(ast.parse(path.read_text())) for path in files))
    reached: set[str] = set()
    ahead = {found for found in named if f"{found}.".startswith(f"{package}.")}
    while ahead:
        reached |= ahead
        ahead = set[str]().union(*(imports.get(found, set()) for found in ahead)) - reached
        ahead = {found for found in ahead if f"{found}.".startswith(f"{package}.")}
    return name in reached


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


def mocked_modules(tree: ast.Module) -> set[str]:
    """Libraries that replace the wire; what a test of money must show happens on it."""
    roots = {name.partition(".")[0] for name in imported_names(tree)}
    return roots & {"respx", "pytest_httpx", "responses", "pytest_mock"} | (
        imported_names(tree) & {"unittest.mock", "httpx.MockTransport"}
    )


def test_every_module_with_logic_has_its_test() -> None:
    """Who changes a module finds its test by name."""
    untested = list(untested_modules(ROOT))

    assert untested == [], "\n".join(untested)


def test_a_module_without_a_test_is_found(tmp_path: Path) -> None:
    """The rule names a module that nobody tests, until the tests of its package reach it."""
    (tmp_path / "src/recon/store").mkdir(parents=True)
    (tmp_path / "src/recon/store/runs.py").write_text("def hold(): ...\n")
    (tmp_path / "src/recon/store/names.py").write_text("LIMIT = 1\n")
    (tmp_path / "tests/recon/store").mkdir(parents=True)

    assert list(untested_modules(tmp_path)) == ["src/recon/store/runs.py"]

    (tmp_path / "src/recon/store/night.py").write_text("import recon.store.runs\n")
    (tmp_path / "tests/recon/test_else.py").write_text("from recon.store.night import runs\n")

    assert list(untested_modules(tmp_path)) == ["src/recon/store/runs.py"]

    (tmp_path / "tests/recon/store/test_all.py").write_text("import recon.store.night\n")

    assert list(untested_modules(tmp_path)) == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=from_root)
def test_every_test_expects_something(path: Path) -> None:
    """A test without an expectation is green for ever."""
    tree = ast.parse(path.read_text("utf-8"))

    found = list(unprovable_tests(str(path.relative_to(ROOT)), tree))

    assert found == [], "\n".join(found)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=from_root)
def test_no_test_replaces_the_wire(path: Path) -> None:
    """Faults are played on real sockets; a mock would replace the code that tells them apart."""
    assert mocked_modules(ast.parse(path.read_text("utf-8"))) == set()


def test_a_mock_of_the_wire_is_found() -> None:
    """The rule knows the ways in which a wire is replaced."""
    assert mocked_modules(ast.parse("from unittest.mock import Mock")) == {"unittest.mock"}
    assert mocked_modules(ast.parse("from httpx import MockTransport")) == {"httpx.MockTransport"}
    assert mocked_modules(ast.parse("import respx.router")) == {"respx"}


def test_a_test_that_expects_nothing_is_found() -> None:
    """The rule names the empty test, and knows an expectation behind a call."""
    text = """
def expect_total(): assert 1
def test_empty(): total()
def test_by_call(): expect_total()
"""

    assert list(unprovable_tests("t.py", ast.parse(text))) == ["t.py:3 test_empty expects nothing"]
