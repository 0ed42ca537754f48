"""A night that is not proven says why on page one, and what to do about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import ControlTotal, Verdict
from tests.reports.drawn_sheets import content_of, words_on

Build = Callable[..., NightFigures]
WHY = "Why this night is not proven"


def failing(number: str, name: str, *, off_by: int = 0, currency: str = "") -> ControlTotal:
    """A control total whose sides differ."""
    measure = "amount" if currency else "count"
    return ControlTotal(number, name, "100042", "100042001", currency, measure, 500 + off_by, 500)


def page_one(figures: NightFigures) -> list[str]:
    """Every text of the Summary."""
    return words_on(content_of(figures), "Summary")


def test_a_proven_night_has_no_such_block(build: Build) -> None:
    """Nothing is wrong, nothing is said."""
    assert WHY not in page_one(build())


def test_what_does_not_tie_is_named_with_the_order_and_what_to_do(build: Build) -> None:
    """The total in plain words, the record of exactly this money, the command, the way out."""
    night = build()
    row = night.breaks.iloc[0]
    total = failing("T5A", "gateway - orders = effects", off_by=int(row["gateway_amount"]))
    total = replace(total, currency=str(row["currency"]), measure="amount")
    words = page_one(replace(night, verdict=Verdict.NOT_PROVEN, control_totals=(total,)))

    assert WHY in words
    assert "gateway less order files = explained by the sheets" in words
    (told,) = [one for one in words if "`recon verify --compare`" in one]
    assert str(row["order_no"]) in told
    assert any(f"`recon release {night.run_id}`" in one for one in words)


def test_sheets_that_do_not_add_up_are_named_by_their_block(build: Build) -> None:
    """Where only the workbook's own check fails, page one says which."""
    night = build()
    words = page_one(replace(night, movements=night.movements.iloc[1:]))

    assert "Breaks from the night before to tonight" in words
    assert any("Tell IT, and sign nothing" in one for one in words)


def test_more_than_fit_are_counted(build: Build) -> None:
    """Five are shown, the others are one line that leads to all."""
    totals: tuple[Any, ...] = tuple(failing("T1", f"total {n}", off_by=1) for n in range(8))
    words = page_one(build(verdict=Verdict.NOT_PROVEN, control_totals=totals))

    assert [one for one in words if one.startswith("total ")] == [f"total {n}" for n in range(5)]
    assert "and 3 more, first on the list of every check" in words
