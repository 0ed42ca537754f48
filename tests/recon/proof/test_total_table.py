"""Every control total has a test that breaks it and sees it fail: the table, and what holds it."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
SOURCE = TESTS.parent / "src" / "recon"
BROKEN = "recon/proof/test_control_totals.py::test_a_broken_result_fails_its_total"
SHEETS = (
    "recon/steps/night/test_whole_night.py"
    "::test_sheets_that_differ_from_the_database_are_not_proven"
)
FILES = (
    "reports/reading/test_beside_files.py"
    "::test_a_file_that_lost_a_row_or_a_cent_is_not_the_sheets_total"
)
BY_SQL = (
    "recon/proof/test_sheets_in_sql.py"
    "::test_each_figure_that_is_wrong_on_both_its_sides_is_found_by_sql"
)
STATES = "recon/proof/test_second_engine.py::test_a_file_that_was_changed_is_found"
BANK = "recon/proof/test_totals_of_bank.py"
LOST = f"{BANK}::test_a_source_that_lost_something_fails"
FORGOTTEN = f"{BANK}::test_an_entry_in_scope_that_is_forgotten_fails"
UNSHOWN = f"{BANK}::test_an_effect_that_is_lost_on_its_way_fails"

TOTALS: dict[str, tuple[str, ...]] = {
    "T0": (BROKEN,),
    "T1": (BROKEN,),
    "T2": (BROKEN,),
    "T3": (BROKEN,),
    "T4": (BROKEN,),
    "T5A": (BROKEN,),
    "T5B": (BROKEN,),
    "T5C": (BROKEN,),
    "T6": (BROKEN,),
    "T7": (BROKEN,),
    "T8": (BROKEN,),
    "T9": (BROKEN,),
    "T10": (BROKEN,),
    "T11": (BROKEN,),
    "T12": (BROKEN,),
    "T13": (SHEETS, FILES, BY_SQL),
    "T14": (STATES,),
    "T15": (LOST,),
    "T16": (LOST,),
    "T17": (LOST, FORGOTTEN, UNSHOWN),
    "T18": (BROKEN,),
    "T19": (BROKEN,),
}
"""Number of a total -> the tests that break it. One test breaks T0 to T12, T18 and T19, by a list
of its own."""


def test_every_total_that_the_code_states_has_a_row() -> None:
    """A total that is added without a test that breaks it is noticed here."""
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    stated = {*re.findall(r'"(T\d+[A-C]?)"', text)}
    assert 'f"T5{leg}"' in text

    assert stated | {"T5B", "T5C"} == {*TOTALS}


def test_every_test_that_breaks_a_total_exists() -> None:
    """A test or a mutation that was renamed or removed is noticed here."""
    absent = []
    for number, named in TOTALS.items():
        for one in named:
            path, _, name = one.partition("::")
            text = (TESTS / path).read_text()
            listed = one != BROKEN or f'    ("{number}", ' in text
            if f"def {name}(" not in text or not listed:
                absent.append((number, one))

    assert absent == []
