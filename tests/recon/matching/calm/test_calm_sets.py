"""Calm sets: which they are, and that no result is another for the parts they are judged in."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.calm import calm_sets
from recon.matching.calm.calm_sets import Calm, set_aside
from recon.model.words import Flag
from recon.proof.control_totals import Proof, control_totals
from recon.proof.engine import concluded, prove
from tests.planted import planted
from tests.planted.all_classified import prove_all_classified
from tests.planted.planted_files import AS_OF
from tests.recon.matching.calm.test_aside import RULES_OF_NIGHTS, assert_same, with_open_sets
from tests.recon.matching.conftest import LONG_AGO
from tests.recon.matching.turned import turned

SOON = {"valid_days": 365, "warn_days": 365}
"""Every authorisation ends soon."""


@pytest.fixture(autouse=True)
def small_nights_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights of a test are judged in parts of few sets."""
    monkeypatch.setattr(calm_sets, "SETS_MIN", 1)
    monkeypatch.setattr(calm_sets, "SETS_PER_PART", 7)


def calm_of(case: Any) -> int:
    """How many sets of a case are judged by themselves."""
    aside = set_aside(case.sources(), rules=case.rules, previous=case.previous, as_of=AS_OF)
    return len(aside.calm.sets)


def open_set(case: Any) -> Any:
    """An order that is authorised on both sides."""
    return case.order("authorised").payment("authorised")


LEFT: dict[str, Callable[[Any], Any]] = {
    "order-twice": lambda c: open_set(c).order("authorised"),
    "payment-twice": lambda c: open_set(c).payment("authorised", transaction_id="T2"),
    "payment-of-another-order": lambda c: open_set(c).payment(
        "authorised", order_no="B", transaction_id="T1"
    ),
    "answer-twice": lambda c: open_set(c).answer("failed"),
    "not-found": lambda c: c.order("authorised").answer("not_found"),
    "unmapped": lambda c: c.order("authorised").payment("unmapped"),
    "keyless-entry": lambda c: open_set(c).entry("refund", order_no="", transaction_id="T1"),
    "keyless-of-the-same-name": lambda c: open_set(c).entry(
        "refund", order_no="", transaction_id="A1"
    ),
    "our-move": lambda c: open_set(c).move("capture", "withdrawn"),
    "rejected-row": lambda c: open_set(c).reject(),
    "break": lambda c: c.order().payment("cancelled"),
    "other-reference": lambda c: c.order("authorised", transaction_id="T9").payment("authorised"),
    "other-reference-ends-soon": lambda c: (
        c.order("authorised", transaction_id="T9").payment("authorised").ruled(authorisation=SOON)
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_others_may_speak_of_is_left(case: Any, name: str) -> None:
    """A set that another row names, or that needs an explanation, is judged with all others."""
    assert calm_of(LEFT[name](case)) == 0


CALM: dict[str, Callable[[Any], Any]] = {
    "exact": lambda c: c.order().payment().entry(),
    "authorised": open_set,
    "cancelled": lambda c: c.order("cancelled").payment("cancelled"),
    "asked": lambda c: open_set(c).asked("A1"),
    "ends-soon": lambda c: open_set(c).ruled(authorisation=SOON),
    "other-date": lambda c: c.order(ordered_at=LONG_AGO - timedelta(days=1)).payment().entry(),
    "beside-a-keyless-entry": lambda c: open_set(c).entry(
        "refund", order_no="", transaction_id="T2"
    ),
}


@pytest.mark.parametrize("name", CALM)
def test_what_stands_by_itself_is_calm(case: Any, name: str) -> None:
    """One order and one payment in the same open state need nothing else of the night."""
    assert calm_of(CALM[name](case)) == 1


SPOILT: dict[str, Callable[[list[Calm]], list[dict[str, pd.DataFrame]]]] = {
    "lost": lambda parts: [_emptied(parts[0].frames), *(part.frames for part in parts[1:])],
    "doubled": lambda parts: [_twice(parts[0].frames), *(part.frames for part in parts[1:])],
    "in the place of another": lambda parts: [
        parts[1].frames,
        *(part.frames for part in parts[1:]),
    ],
}


def _emptied(frames: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    return {name: frame.iloc[:0] for name, frame in frames.items()}


def _twice(frames: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    return {name: pd.concat([frame, frame]) for name, frame in frames.items()}


def ending_soon() -> tuple[Proof, Proof]:
    """A night with authorisations that end soon and orders of another day: in parts and whole."""
    plan = planted(size=120, broken=61)
    night = with_open_sets(plan.sources)
    other = LONG_AGO - timedelta(days=1)
    days = night.orders["ordered_at"].where(night.orders.index % 5 != 1, other)
    night = replace(night, orders=night.orders.assign(ordered_at=days))
    rules = Rules.of(
        {**plan.rules.model_dump(exclude_unset=True), "authorisation": SOON}, source="nights"
    )
    options = {"rules": rules, "as_of": AS_OF, "previous": None}
    return prove(night, **options), prove_all_classified(night, **options)


def test_flags_of_dates_come_to_the_same() -> None:
    """Sets that end soon, or have another date on either side, are calm and change nothing."""
    parts, whole = ending_soon()

    assert_same(concluded(parts, as_of=AS_OF), concluded(whole, as_of=AS_OF))
    matches = parts.frames.matches
    calm = matches[~matches["match_id"].isin([*parts.ids])]
    assert {Flag.EXPIRING.value, Flag.CUT_OFF_DIFFERENCE.value} <= {*calm["flags"]}


@pytest.fixture(params=SPOILT)
def one_part_spoilt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first part shows is lost, told twice, or told in the place of another part's."""
    together = calm_sets._together

    def spoilt(parts: list[Calm], **options: Any) -> Calm:
        if not parts:
            return together(parts, **options)
        assert len(parts) > 1
        pairs = zip(parts, SPOILT[request.param](parts), strict=True)
        return together([replace(part, frames=shown) for part, shown in pairs], **options)

    monkeypatch.setattr(calm_sets, "_together", spoilt)


@pytest.mark.usefixtures("one_part_spoilt")
def test_a_part_with_money_that_is_not_told_once_is_found_by_a_total() -> None:
    """What matches, pending and unverified come to is held against the sources: T4."""
    parts, _ = ending_soon()

    assert "T4" in {total.id for total in control_totals(parts) if not total.passed}


@pytest.mark.usefixtures("one_part_spoilt")
def test_a_part_without_money_that_is_not_told_once_is_found_in_the_other_order() -> None:
    """Orders that are only authorised add up to nothing: in another order others are in the part.

    The digest is then another one, which the property tests of row order see.
    """
    night = with_open_sets(planted(size=120, broken=60).sources)
    told = {"rules": RULES_OF_NIGHTS, "as_of": AS_OF, "previous": None}

    ours, others = (
        concluded(prove(each, **told), as_of=AS_OF).digest for each in (night, turned(night))
    )

    assert ours != others


def test_an_effect_of_a_calm_match_is_explained_by_nothing() -> None:
    """T5 asks of every match that carries something, also of one that was judged by itself."""
    proof, _ = ending_soon()
    matches = proof.frames.matches
    soon = matches["flags"].eq(Flag.EXPIRING.value) & ~matches["match_id"].isin([*proof.ids])
    bent = matches.assign(effect_orders=matches["effect_orders"].mask(soon, 7))
    totals = control_totals(replace(proof, frames=replace(proof.frames, matches=bent)))

    assert soon.any()
    (explains,) = {
        (one.id, one.passed) for one in totals if one.name.startswith("matches with an effect")
    }
    assert explains == ("T5A", False)
