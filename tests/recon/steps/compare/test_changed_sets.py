"""Why a set is judged otherwise: the side that moved, the rules, or time alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.proof.engine import reconcile
from recon.steps.compare.rules_change import compared
from tests.planted import RULES, planted


@pytest.fixture(scope="module")
def sources() -> Sources:
    """A few orders with breaks among them."""
    return planted(size=60, broken=45, seed=5, settled=False).sources


def judged(
    sources: Sources, *, rules: Any = None, as_of: datetime = datetime(2026, 11, 21, tzinfo=UTC)
) -> Reconciliation:
    """The sources under some rules, at some instant."""
    return reconcile(sources, rules=Rules.of({**RULES, **(rules or {})}, source="x"), as_of=as_of)


def test_the_same_night_does_not_differ(sources: Sources) -> None:
    """Nothing changed, nothing is told."""
    changes, alike = compared(judged(sources), judged(sources))

    assert changes == ()
    assert alike >= 60


def test_a_changed_side_is_named(sources: Sources) -> None:
    """The gateway's amount of every payment is one cent more."""
    other = replace(sources, gateway=sources.gateway.assign(amount=sources.gateway["amount"] + 1))

    changes, _ = compared(judged(sources), judged(other))

    said = [one.why for one in changes]
    assert any(why.startswith("gateway: ") for why in said)
    assert not any("rules" in why or "grace" in why or why.startswith("order") for why in said)


def test_changed_rules_are_named(sources: Sources) -> None:
    """A tolerance closes what no side has changed."""
    other = replace(sources, gateway=sources.gateway.assign(amount=sources.gateway["amount"] + 1))
    tolerant = {"tolerance": {"EUR": {"absolute_minor_units": 5}}}

    changes, _ = compared(judged(other), judged(other, rules=tolerant))

    assert {one.why for one in changes} == {"the rules changed, no side did"}


def test_time_alone_is_named(sources: Sources) -> None:
    """What was within its grace is late ten business days on."""
    early = datetime(2026, 10, 1, 13, tzinfo=UTC)

    changes, _ = compared(
        judged(sources, as_of=early), judged(sources, as_of=early + timedelta(days=40))
    )

    pending = [one for one in changes if one.before == "pending"]
    assert pending
    assert {one.why for one in pending} == {"its grace ran out, no side changed"}


def test_breaks_of_no_order_are_told_apart_by_what_they_are_of(sources: Sources) -> None:
    """One of two batches is no longer wrong: the other one stays, and one change is named."""
    result = judged(sources)
    blank = {"order_no": "", "transaction_id": ""}
    one = result.breaks.iloc[[0]].assign(**blank, break_id="b1", about="S1")
    two = one.assign(break_id="b2", about="S2")
    both = replace(result, breaks=pd.concat([result.breaks, one, two]))
    left = replace(result, breaks=pd.concat([result.breaks, two]))

    (change,), _ = compared(both, left)

    assert (change.key[2], change.after) == ("S1", "absent")
