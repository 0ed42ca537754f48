"""The control totals of a night as its folder has them, and what the database says otherwise."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recon.model.errors import ArchiveBrokenError
from recon.model.words import ControlTotal
from recon.proof.night_tables import totals_of
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import PROOF
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.database.bound_tables import SUMMARY
from recon.store.database.record import changed
from recon.store.nights import results
from recon.store.nights.runs import Run


def sealed_totals(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[ControlTotal, ...] | None:
    """The totals that a run sealed, by their key; None where the archive has no proof of it.

    Raises:
        ArchiveError: its folder cannot be reached, or they are not as they were sealed.
    """
    night = sealed_night(connection, run, environment=environment)
    return totals_of(night.table("totals")) if PROOF in night.steps else None


def changed_totals(connection: Connection, run: Run, *, environment: Environment) -> Iterator[str]:
    """Every control total of a run that the database has otherwise than its folder, in words.

    Raises:
        ArchiveError: see `sealed_totals`.
    """
    sealed = sealed_totals(connection, run, environment=environment)
    if sealed is None:
        return  # it was never sealed, or what is gone is named of the folder
    kept = results.load_totals(connection, run.run_id)
    more, fewer = Counter(kept) - Counter(sealed), Counter(sealed) - Counter(kept)
    for total in sorted({*map(_which, more), *map(_which, fewer)}, key=str):
        yield (
            f"run {run.run_id}: the database says {_sides(more, of=total)} of {_shown(total)}, "
            f"the night sealed {_sides(fewer, of=total)}; it was changed past the code"
        )


def changed_summary(connection: Connection, run_id: str) -> Iterator[str]:
    """What the database says of a run's verdict, rows and exposure that the night did not bind."""
    return changed(connection, SUMMARY, of=run_id)


def refuse_changed_result(connection: Connection, run: Run, *, environment: Environment) -> None:
    """Refuse to go on from totals that the run did not seal, or from a summary it did not bind.

    Raises:
        ArchiveError: see `sealed_totals`; or the database has others, and which.
    """
    changed = next(changed_totals(connection, run, environment=environment), "")
    if changed:
        msg = f"a control total was changed past the code, so no workbook is made of it: {changed}"
        raise ArchiveBrokenError(msg)
    if changed := next(changed_summary(connection, run.run_id), ""):
        msg = f"a result was changed past the code, so no workbook is made of it: {changed}"
        raise ArchiveBrokenError(msg)


def _which(total: ControlTotal) -> ControlTotal:
    """Which equation it is, whatever its sides."""
    return replace(total, left=0, right=0)


def _sides(totals: Iterable[ControlTotal], *, of: ControlTotal) -> str:
    sides = sorted(f"{each.left} = {each.right}" for each in totals if _which(each) == of)
    return " and ".join(sides) or "nothing"


def _shown(total: ControlTotal) -> str:
    words = (total.id, total.name, total.merchant_id, total.account_id, total.currency)
    return " ".join(word for word in (*words, total.measure) if word)
