"""One part of a night: what of it is aside, judged as a night of its own, and what is left.

A part is all rows of some order numbers. Its calm sets come to the same whatever else the
night holds, so that their result is added to that of all rows that are left (whole_of_parts).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.config.rules import Rules
from recon.matching.breaks.sum_bounds import Sums, sums_of_amounts
from recon.matching.calm.calm_sets import CalmAndLeft, set_aside, without_left
from recon.matching.calm.elsewhere import Elsewhere
from recon.matching.causes.aside_evidence import AsideEvidence
from recon.matching.causes.cause_evidence import CauseEvidence
from recon.matching.causes.shared_causes import evidence_of
from recon.matching.frames.same_words import taken
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sides.agreed_fees import with_fees_priced
from recon.matching.sides.settled_refunds import with_refunds_settled
from recon.matching.sides.summed_lines import summed_lines
from recon.model.words import ControlTotal
from recon.proof.engine import classified, concluded
from recon.proof.night_tables import ITEMS
from recon.proof.scope import Line

SECTIONS = ("matches", "pending", "unverified")
"""Frames of a result that parts have rows of; no break is aside."""
FRAMES = ("orders", "gateway", "ledger", "settlement", "universe")
"""Sources of which a part has the rows of its order numbers."""


@dataclass(frozen=True, slots=True)
class PartFigures:
    """What one part adds to the result of its night."""

    totals: tuple[ControlTotal, ...]
    sides: pd.DataFrame
    """See Reconciliation.sides."""
    scope: tuple[Line, ...]
    """See Reconciliation.scope_of_assurance."""
    evidence: AsideEvidence
    sums: Sums
    """What the amounts of the rows aside come to, without signs."""
    rows: Mapping[str, int]
    """How many rows each of SECTIONS and the items have."""
    aside: Mapping[str, int]
    """Source -> its rows that are aside."""
    reasons: Mapping[str, int]
    """Why sets are unverified -> how many are."""
    settled: pd.DataFrame | None
    """The settlement lines aside, summed up (see summed_lines); None: nobody gave any."""
    unpriced: Mapping[str, int]
    """See ListedFees.not_covered."""


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """One part, judged."""

    figures: PartFigures
    frames: Mapping[str, pd.DataFrame]
    """SECTIONS of what is aside, in the order of a result."""
    items: pa.Table
    """Where the rows aside went that no match names, as the file `items` has them."""
    left: Sources
    """FRAMES of what is left."""


def judged_part(
    rows: Sources,
    *,
    elsewhere: Elsewhere,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> JudgedPart:
    """Judge what of a part is aside.

    Args:
        rows: FRAMES of all rows of some order numbers, and what the whole night has of
            instructions, rejects, quarantined, volumes, settled and orders_lack_since.
        elsewhere: what is known of all rows.
        rules: how they are judged.
        as_of: when.
        previous: what the night before left open, of all keys.
    """
    given = _prepared(rows, elsewhere=elsewhere, rules=rules)
    parted = set_aside(given, rules=rules, previous=previous, as_of=as_of, elsewhere=elsewhere)
    sources, aside = without_left(parted, sources=given)
    proof = classified(sources, aside=aside, rules=rules, as_of=as_of, previous=None)
    evidence = evidence_of(
        CauseEvidence(proof.joined, aside.sources, rules, aside, sources, proof.hosts)
    )
    result = concluded(proof, as_of=as_of)
    frames = {name: getattr(result, name) for name in SECTIONS}
    items = result.items
    figures = PartFigures(
        totals=result.control_totals,
        sides=result.sides,
        scope=result.scope_of_assurance,
        evidence=evidence,
        sums=sums_of_amounts(sources),
        rows={**{name: len(frame) for name, frame in frames.items()}, ITEMS: len(items)},
        aside={leg: len(getattr(sources, leg)) for leg in parted.left},
        reasons=Counter(result.unverified["reason"].tolist()),
        settled=None if sources.settlement is None else summed_lines(sources.settlement),
        unpriced=proof.fees.not_covered,
    )
    return JudgedPart(figures, frames, items, _left(rows, aside=parted))


def _left(rows: Sources, *, aside: CalmAndLeft) -> Sources:
    """What is left as it was given: what is added to it is of all that is left, together."""
    left = aside.sources
    frames: dict[str, Any] = {
        name: taken(getattr(rows, name), rows=numbers) for name, numbers in aside.left.items()
    }
    return replace(rows, **frames, universe=left.universe)


def _prepared(rows: Sources, *, elsewhere: Elsewhere, rules: Rules) -> Sources:
    """The rows as they are compared: what refunds settled, and what fees differ by.

    What engine.prepared does beside it is said of rows that are never aside.
    """
    settled = with_refunds_settled(rows, rules=rules, others=elsewhere.refunds)
    return replace(with_fees_priced(settled, rules=rules), is_part=True)
