"""What the reconciliation is worth, worst first."""

from collections.abc import Iterable
from typing import NamedTuple

from recon.config.rules import Rules
from recon.matching.frames.sources import Sources
from recon.model.words import ControlTotal, Verdict


class OpenCounts(NamedTuple):
    """How much of a result stands against a better verdict."""

    breaks: int
    unverified: int
    """Sets."""
    unverified_items: int
    has_parts: bool = False
    """Whether orders and payments were set aside in parts that are not among the sources."""


def verdict_of(
    totals: Iterable[ControlTotal],
    *,
    judged: OpenCounts,
    sources: Sources,
    rules: Rules,
) -> Verdict:
    """NOT PROVEN > INCOMPLETE > BREAKS OPEN > RECONCILED."""
    if not all(total.passed for total in totals):
        return Verdict.NOT_PROVEN
    uncertain = judged.unverified_items + len(sources.rejects)
    missing = _source_missing(sources, are_others=judged.has_parts)
    if missing or uncertain > allowance(sources, rules=rules):
        return Verdict.INCOMPLETE
    if judged.breaks or judged.unverified or sources.rejects:
        return Verdict.BREAKS_OPEN
    return Verdict.RECONCILED


def _source_missing(sources: Sources, *, are_others: bool) -> bool:
    if sources.ledger is None:
        return True
    return not are_others and (sources.orders.empty or sources.gateway.empty)


def allowance(sources: Sources, *, rules: Rules) -> int:
    """Rows that may be rejected or unverified before the night is incomplete."""
    read = sum(file.rows_read for file in sources.files)
    if not sources.files:
        frames = (sources.orders, sources.gateway, sources.ledger, sources.instructions)
        read = sum(len(frame) for frame in frames if frame is not None) + len(sources.rejects)
    share = int(rules.verdict.max_unverified_share * read)
    return max(rules.verdict.max_unverified_rows, share)
