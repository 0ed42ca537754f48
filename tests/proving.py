"""The comparison with its control totals, for tests that ask whether they hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import MATCH_COLUMNS, Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.figures import NightFigures
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


@dataclass
class OneLine:
    """A workbook of one line, and a reader that reads every figure back as it was given."""

    figures: list[NightFigures] = field(default_factory=list)

    def write(self, figures: NightFigures, path: Path) -> Path:
        """Write the verdict alone."""
        path.write_text(figures.verdict)
        self.figures.append(figures)
        return path

    def totals(
        self, _path: Path, *, companions: Mapping[str, Path]
    ) -> dict[str, tuple[int, dict[str, int]]]:
        """The totals of the figures that were written last."""
        figures = self.figures[-1]
        none = pd.DataFrame(columns=[*MATCH_COLUMNS])
        matches = pd.concat([*figures.matches.batches()] or [none])
        lists = {
            "break": figures.breaks,
            "match": matches,
            "pending": figures.pending,
            "unverified": figures.unverified,
            **{f"match by {rule}": rows for rule, rows in matches.groupby("rule")},
        }
        assert {file.name for file in figures.list_files.values()} <= {*companions}
        return {
            section: (len(rows), rows.groupby("currency")["effect_orders"].sum().to_dict())
            for section, rows in lists.items()
        }
