"""What the reconciliation is worth, worst first."""

from collections.abc import Iterable

from recon.config.rules import Rules
from recon.matching.breaks.places import Stand
from recon.matching.breaks.result_frames import Frames
from recon.matching.frames.sources import Sources
from recon.model.words import ControlTotal, SetState, Verdict


def verdict_of(
    totals: Iterable[ControlTotal],
    *,
    frames: Frames,
    stands: list[Stand],
    sources: Sources,
    rules: Rules,
) -> Verdict:
    """NOT PROVEN > INCOMPLETE > BREAKS OPEN > RECONCILED."""
    if not all(total.passed for total in totals):
        return Verdict.NOT_PROVEN
    items = sum(stand.items for stand in stands if stand.state == SetState.UNVERIFIED)
    uncertain = items + len(sources.rejects)
    if _source_missing(sources) or uncertain > allowance(sources, rules=rules):
        return Verdict.INCOMPLETE
    if len(frames.breaks) or len(frames.unverified) or sources.rejects:
        return Verdict.BREAKS_OPEN
    return Verdict.RECONCILED


def _source_missing(sources: Sources) -> bool:
    return sources.ledger is None or sources.orders.empty or sources.gateway.empty


def allowance(sources: Sources, *, rules: Rules) -> int:
    """Rows that may be rejected or unverified before the night is incomplete."""
    read = sum(file.rows_read for file in sources.files)
    if not sources.files:
        frames = (sources.orders, sources.gateway, sources.ledger, sources.instructions)
        read = sum(len(frame) for frame in frames if frame is not None) + len(sources.rejects)
    share = int(rules.verdict.max_unverified_share * read)
    return max(rules.verdict.max_unverified_rows, share)
