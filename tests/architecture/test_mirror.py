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
HOUSE = "recon"
"""Each folder in it is a room; `reports` is one room by itself."""
CONDUCTED_BY = {"recon.matching": "recon.proof"}
"""Room -> the room that calls its parts in their order: the room's tests may begin there."""
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
        packages = {_package_of(path, source=root / source) for path, _ in trees.values()}
        tested = {
            package: reached_by(package, root / tests / package.partition(".")[2], imports=imports)
            for package in packages
        }
        for name, (path, tree) in trees.items():
            exempt = path.name == "__init__.py" or "migrations" in path.parts
            if exempt or not has_logic(tree):
                continue
            files, reached = tested[_package_of(path, source=root / source)]
            own = f"test_{name.rpartition('.')[2]}"
            if name not in reached and not any(test.startswith(own) for test in files):
                yield str(path.relative_to(root))


def dotted_name(path: Path, *, source: Path) -> str:
    """`recon.room.runs` of its file; a package's name for its `__init__`."""
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package_of(path: Path, *, source: Path) -> str:
    """The room of a file: its tests may stand anywhere in the room's own folder of tests."""
    room, *inside = path.relative_to(source).parts
    return f"{source.name}.{room}" if inside and source.name == HOUSE else source.name


def reached_by(
    package: str, folder: Path, *, imports: Mapping[str, set[str]]
) -> tuple[set[str], set[str]]:
    """Names of a package's test files, and the modules they reach by the package's own imports."""
    files = sorted(folder.glob("*.py") if package == HOUSE else folder.rglob("*.py"))
    named = set[str]().union(*(imported_names(ast.parse(path.read_text())) for path in files))
    rooms = (f"{package}.", f"{CONDUCTED_BY.get(package, package)}.")
    reached: set[str] = set()
    ahead = {found for found in named if f"{found}.".startswith(rooms)}
    while ahead:
        reached |= ahead
        ahead = set[str]().union(*(imports.get(found, set()) for found in ahead)) - reached
        ahead = {found for found in ahead if f"{found}.".startswith(rooms)}
    return {path.name for path in files}, reached


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
    (tmp_path / "src/recon/room").mkdir(parents=True)
    (tmp_path / "src/recon/room/runs.py").write_text("def hold(): ...\n")
    (tmp_path / "src/recon/room/names.py").write_text("LIMIT = 1\n")
    (tmp_path / "tests/recon/room").mkdir(parents=True)

    assert list(untested_modules(tmp_path)) == ["src/recon/room/runs.py"]

    (tmp_path / "src/recon/room/night.py").write_text("import recon.room.runs\n")
    (tmp_path / "tests/recon/test_else.py").write_text("from recon.room.night import runs\n")

    assert list(untested_modules(tmp_path)) == ["src/recon/room/runs.py"]

    (tmp_path / "tests/recon/room/test_all.py").write_text("import recon.room.night\n")

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
