"""The comparison with its control totals, for tests that ask whether they hold."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.terms import ControlTotal
from recon.proof.engine import reconcile
from recon.proof.proven import proven


def reconcile_proven(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None = None
) -> Reconciliation:
    """As `engine.reconcile`, with what SQL says of it."""
    result = reconcile(sources, rules=rules, as_of=as_of, previous=previous)
    return proven(result, sources=sources, rules=rules, previous=previous)


def failed(result: Reconciliation) -> list[ControlTotal]:
    """The totals that do not hold, of those that SQL was asked: T9 is there of any night."""
    assert "T9" in {total.id for total in result.control_totals}
    return [total for total in result.control_totals if not total.passed]


def losing_a_break(compare: Callable[..., Reconciliation]) -> Callable[..., Reconciliation]:
    """The comparison as one that loses the first break of what it came to."""

    def less(*given: Any, **terms: Any) -> Reconciliation:
        result = compare(*given, **terms)
        return replace(result, breaks=result.breaks.iloc[1:])

    return less
