"""The table of faults is whole, and every test that it names is there."""

from pathlib import Path

from fault_table import FAULTS

TESTS = Path(__file__).parents[1]
ROWS = 52
AUTOMATED_MIN = 51


def test_every_fault_has_a_test_or_a_reason() -> None:
    """All rows are there; none has both, none has neither, and most are automated."""
    automated = [number for number, fault in FAULTS.items() if fault.tests]

    assert list(FAULTS) == list(range(1, ROWS + 1))
    assert all(bool(fault.tests) != bool(fault.why_not) for fault in FAULTS.values())
    assert len(automated) >= AUTOMATED_MIN


def test_every_named_test_exists() -> None:
    """A test that was renamed or removed is noticed here."""
    named = {one for fault in FAULTS.values() for one in fault.tests}
    absent = []
    for one in sorted(named):
        path, _, name = one.partition("::")
        file = TESTS / path
        if not file.is_file() or f"def {name}(" not in file.read_text():
            absent.append(one)

    assert absent == []
