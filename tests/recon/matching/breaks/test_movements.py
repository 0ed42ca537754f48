"""What became of a break since the night before."""

from collections.abc import Callable
from typing import Any

import pytest

JUST_NOW = "2026-11-20T20:00:00Z"


def missing(case: Any) -> Any:
    """An order that the gateway does not know."""
    return case.order().ledger()


@pytest.mark.parametrize(
    ("build", "movement"),
    [
        pytest.param(lambda c: c.order().ledger(), "stays", id="as-it-was"),
        pytest.param(lambda c: c.order(amount=500).ledger(), "revalued", id="other-money"),
        pytest.param(
            lambda c: c.order().payment("authorised").ledger(), "reclassified", id="other-code"
        ),
        pytest.param(lambda c: c.order().payment().entry(), "matched late", id="leg-arrived"),
        pytest.param(
            lambda c: c.order().payment().entry().reject(), "unverified", id="row-in-quarantine"
        ),
        pytest.param(
            lambda c: c.order(ordered_at=JUST_NOW).ledger(), "pending", id="within-grace-again"
        ),
        pytest.param(lambda c: c.order(order_no="other").payment(order_no="other"), "not seen"),
    ],
)
def test_how_a_break_moves_on(
    case: Any, new_case: Callable[[], Any], build: Callable[[Any], Any], movement: str
) -> None:
    """Each break of last night has exactly one movement tonight, and the roll-forward holds."""
    result = build(case).after(missing(new_case()).run()).run()

    told = result.movements[result.movements["order_no"].eq("A1")]
    assert told["movement"].tolist() == [movement]
    assert [total for total in result.control_totals if not total.passed] == []


def test_a_difference_that_ends_is_resolved(case: Any, new_case: Callable[[], Any]) -> None:
    """Amounts do not arrive late: somebody corrected them."""
    earlier = new_case().order().payment(amount=9000).entry(amount=9000).run()

    result = case.order(amount=9000).payment(amount=9000).entry(amount=9000).after(earlier).run()

    assert result.movements["movement"].tolist() == ["resolved"]
    assert result.movements["exposure_before"].tolist() == [1000]


def test_an_outage_moves_breaks_to_unverified_and_the_next_night_heals(
    case: Any, new_case: Callable[[], Any]
) -> None:
    """No usable answer makes no break; what was open is neither lost nor closed."""
    first = missing(new_case()).run()
    outage = new_case().order().answer("failed").ledger().after(first).run()
    healed = case.order().payment().entry().after(outage).run()

    assert (len(outage.breaks), len(outage.unverified)) == (0, 1)
    assert outage.movements["movement"].tolist() == ["unverified"]
    assert (len(healed.matches), len(healed.breaks), len(healed.unverified)) == (1, 0, 0)
