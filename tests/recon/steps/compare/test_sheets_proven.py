import pytest

from recon.model.words import Verdict
from recon.steps.compare.sheets_proven import CHECKS, t13, with_checks

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


def test_a_proven_night_has_no_failing_check_on_its_sheets() -> None:
    """A night that is NOT PROVEN already may show its failing checks."""
    assert with_checks(EXPECTED, verdict=Verdict.BREAKS_OPEN)[CHECKS] == (0, {})
    assert CHECKS not in with_checks(EXPECTED, verdict=Verdict.NOT_PROVEN)
