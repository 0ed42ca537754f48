"""The house: rooms that say what they are, arrows that run down, a linter that would see one up.

Each contract of import-linter is held against the real graph of imports with one arrow too many: a
contract that stays green then would be green for ever.
"""

import ast
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).parents[2]
RECON = ROOT / "src" / "recon"
LOOSE_IN_RECON = {"acts.py", "__init__.py", "py.typed"}
SENTENCE_LINES_MAX = 12
TYPES = {"layers": LayersContract, "forbidden": ForbiddenContract, "protected": ProtectedContract}
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
CONTRACTS: dict[str, dict[str, Any]] = {each["id"]: each for each in OPTIONS["contracts"]}

ARROWS_TOO_MANY = {
    "floors": ("reports.workbook", "flows.nightly"),
    "below": ("recon.steps.night.whole_night", "prefect"),
    "rooms": ("recon.instructions.planning", "recon.store.money.journal"),
    "gateway_client": ("recon.gateway_client.documents", "recon.gateway_client.queries"),
    "files": ("recon.files.formats.csv_text", "recon.files.typing.typed_table"),
    "matching": ("recon.matching.frames.sources", "recon.matching.classifying.outcomes"),
    "store": ("recon.store.database.engine", "recon.store.nights.runs"),
    "steps": ("recon.steps.money.settle", "recon.steps.night.report"),
    "month": ("recon.month.statement", "recon.month.close"),
    "sandbox": ("recon.sandbox.database", "recon.sandbox.server"),
    "reports": ("reports.drawing.blocks", "reports.sheets.page_one"),
    "extras": ("recon.steps.night.report", "recon.month.statement"),
    "bank": ("recon.steps.night.report", "recon.matching.bank.pairing"),
    "fees": ("recon.steps.runtime.night_folder", "recon.matching.sides.agreed_fees"),
    "sandbox for tests": ("recon.steps.money.settle", "recon.sandbox.database"),
    "httpx": ("recon.store.nights.runs", "httpx"),
    "dask": ("recon.steps.compare.reconcile", "distributed"),
    "sqlalchemy": ("recon.steps.money.settle", "sqlalchemy"),
}
"""Contract -> an import that it must find fault with: who imports, and what."""


@pytest.fixture(scope="module")
def graph():
    """Who imports whom, as it stands."""
    return grimp.build_graph(*OPTIONS["root_packages"], include_external_packages=True)


def is_stored(number, graph):
    """Whether the graph keeps a contract of pyproject.toml."""
    configure()
    told = CONTRACTS[number]
    options = {
        name: str(value) if isinstance(value, bool) else value for name, value in told.items()
    }
    options["unmatched_ignore_imports_alerting"] = (
        "none"  # an earlier check took them off the graph
    )
    session = {name: value for name, value in OPTIONS.items() if name != "contracts"}
    contract = TYPES[told["type"]](told["name"], session, options)
    return bool(contract.check(graph, verbose=False).kept)


@pytest.mark.parametrize("number", CONTRACTS)
def test_the_linter_would_find_an_arrow_too_many(number, graph):
    importer, imported = ARROWS_TOO_MANY[number]
    assert not graph.direct_import_exists(importer=importer, imported=imported)
    assert is_stored(number, graph)

    was_known = imported in graph.modules
    if not was_known:
        graph.add_module(imported, is_squashed=True)
    graph.add_import(importer=importer, imported=imported)
    try:
        assert importer in graph.modules
        assert not is_stored(number, graph)
    finally:
        graph.remove_import(importer=importer, imported=imported)
        if not was_known:
            graph.remove_module(imported)


def test_both_ends_of_each_arrow_are_modules_of_ours(graph):
    ours = {name for pair in ARROWS_TOO_MANY.values() for name in pair if "." in name}

    assert ours - graph.modules == set()


def test_no_module_stands_loose():
    loose = {path.name for path in RECON.iterdir() if path.is_file()}

    assert loose == LOOSE_IN_RECON


ROOMS = [
    path
    for top in (RECON, ROOT / "reports")
    for path in sorted(top.rglob("*"))
    if any(path.rglob("*.py")) and "migrations" not in path.parts
]


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_room_says_what_it_is(room):
    words = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""

    assert words.split("\n\n")[0].rstrip().endswith(".")
    assert len(words.splitlines()) <= SENTENCE_LINES_MAX
