"""The comparison with its control totals, for tests that ask whether they hold."""

from datetime import datetime

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.words import ControlTotal
from recon.proof.engine import reconcile
from recon.proof.proven import proven


def reconcile_proven(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None = None
) -> Reconciliation:
    """As `engine.reconcile`, with what SQL says of it."""
    result = reconcile(sources, rules=rules, as_of=as_of, previous=previous)
    return proven(result, sources=sources, rules=rules, previous=previous)


def failed(result: Reconciliation) -> list[ControlTotal]:
    """The totals that do not hold; there is none without one that was asked."""
    assert result.control_totals
    return [total for total in result.control_totals if not total.passed]
