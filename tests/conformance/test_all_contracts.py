"""That none of the document's ten operations is without its contract."""

import ast
import re
from pathlib import Path

OPERATIONS = range(1, 11)
"""As the API document numbers them, from the payment by card to the payout."""
NAMED = re.compile(r"^Contracts? (\d+)(?: to (\d+))?,?:?")


def numbers(source: str) -> set[int]:
    """The operations that a module's first line names."""
    found = NAMED.match(ast.get_docstring(ast.parse(source)) or "")
    if found is None:
        return set()
    first, last = int(found[1]), int(found[2] or found[1])
    return set(range(first, last + 1))


def test_every_operation_has_its_contract() -> None:
    """The modules of this folder name ten operations, and each of them has tests."""
    modules = [path.read_text() for path in Path(__file__).parent.glob("test_*_contract*.py")]
    assert set().union(*map(numbers, modules)) == set(OPERATIONS)
    assert all("\ndef test_" in source for source in modules)
