"""Exported journals that a night's ledger does not show yet."""

from typing import Any

from recon.matching.breaks.result import Reconciliation
from recon.matching.causes.proposed_journals import LACKS, journal_id, not_in_the_books
from recon.matching.frames.sources import Exported, Sources
from recon.model.figures import HandedOut
from recon.steps.runtime.environment import Environment
from recon.store.nights import journal_rows


def handed_out(
    result: Reconciliation, *, sources: Sources, environment: Environment
) -> tuple[HandedOut, ...]:
    """Journals exported before the run read its inputs that its ledger does not show yet."""
    waiting = not_in_the_books(result.effects, exported=sources.exported)
    names = {
        journal_id(export.break_id, export.currency, version=export.version): export
        for export in waiting
    }
    with environment.store.reading() as connection:
        out = journal_rows.handed_out(connection, names)
    rows = [
        HandedOut(
            journal_id=name,
            break_id=line.break_id,
            currency=line.currency,
            **_of_break(result, line),
            run_id=out[name].run_id,
            handed_out_at=out[name].exported_at,
        )
        for name, line in names.items()
    ]
    return tuple(sorted(rows, key=lambda export: (export.handed_out_at, export.journal_id)))


def _of_break(result: Reconciliation, exported: Exported) -> dict[str, Any]:
    """Order and payment of a journal's break, and the amount that the ledger still lacks."""
    breaks, effects = result.breaks, result.effects
    mine = breaks[breaks["break_id"].eq(exported.break_id)].iloc[0]
    lacks = effects["break_id"].eq(exported.break_id) & effects["currency"].eq(exported.currency)
    lacks &= effects["leg"].isin(LACKS)
    return {
        "order_no": str(mine["order_no"]),
        "transaction_id": str(mine["transaction_id"]),
        "amount": int(effects.loc[lacks, "amount"].sum()),
    }
