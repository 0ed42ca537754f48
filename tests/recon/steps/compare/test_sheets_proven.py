import pytest

from recon.model.figures import ListFile
from recon.model.words import Verdict
from recon.proof.totals_in_sql import in_file
from recon.steps.compare.sheets_proven import (
    CHECKS,
    NAME,
    SheetTotals,
    t13,
    with_checks,
    with_files,
)

EXPECTED = {"break": (2, {"EUR": 300, "": 0}), "pending": (0, {})}


@pytest.mark.parametrize(
    ("found", "failing"),
    [
        ({"break": (2, {"EUR": 300}), "pending": (0, {})}, []),
        ({"break": (1, {"EUR": 300})}, [("break", "", 1, 2)]),
        ({"break": (2, {"EUR": 299})}, [("break", "EUR", 299, 300)]),
        ({"break": (2, {"EUR": 300, "JPY": 5})}, [("break", "JPY", 5, 0)]),
        ({}, [("break", "", 0, 2), ("break", "EUR", 0, 300)]),
    ],
)
def test_each_count_and_each_currency_is_held_against_the_sheet(
    found: object, failing: object
) -> None:
    """What is less, other, too much or absent on the sheet fails, by section and currency."""
    totals = t13(account=("m", "a"), expected=EXPECTED, totals=found)  # type: ignore[arg-type] # as read

    told = [
        (one.name.removeprefix("sheet = database, "), one.currency, one.left, one.right)
        for one in totals
        if not one.passed
    ]
    assert told == failing
    assert {(one.id, one.merchant_id, one.account_id) for one in totals} == {("T13", "m", "a")}


FILE = ListFile("results/breaks.parquet", 2, 4711, "ab" * 32)
TRUE, OTHER = in_file("break", sha256=FILE.sha256), in_file("break", sha256="cd" * 32)


@pytest.mark.parametrize(
    ("named", "failing"),
    [
        ({TRUE: (2, {})}, {}),
        ({TRUE: (3, {})}, {TRUE: (3, 2)}),
        ({OTHER: (2, {})}, {TRUE: (0, 2), OTHER: (2, 0)}),
        ({}, {TRUE: (0, 2)}),
        ({TRUE: (2, {}), OTHER: (2, {})}, {OTHER: (2, 0)}),
    ],
)
def test_the_file_that_a_workbook_names_is_the_one_that_was_sealed(
    named: SheetTotals, failing: dict[str, tuple[int, int]]
) -> None:
    """Other rows, another hash, no file and one too many fail, each by its name."""
    expected = with_files(EXPECTED, files={"break": FILE})
    totals = t13(account=("m", "a"), expected=expected, totals={**EXPECTED, **named})

    failed = (one for one in totals if not one.passed)
    assert {one.name.removeprefix(NAME): (one.left, one.right) for one in failed} == failing


def test_a_proven_night_has_no_failing_check_on_its_sheets() -> None:
    """A night that is NOT PROVEN already may show its failing checks."""
    assert with_checks(EXPECTED, verdict=Verdict.BREAKS_OPEN)[CHECKS] == (0, {})
    assert CHECKS not in with_checks(EXPECTED, verdict=Verdict.NOT_PROVEN)
