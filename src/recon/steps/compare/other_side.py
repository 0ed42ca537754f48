"""T14: the same rows compared once more, in another order, give the same digest.

The other side is made here, before anything else is held, or by another process beside the first
comparison: that one reads the rows from the files of the night's folder, so that it is proven, too,
that they say what was compared.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from recon.archive.step_folder import Sealed
from recon.matching.breaks.result import Reconciliation
from recon.matching.engine import digest_alone
from recon.matching.frames.same_words import held_once, upside_down
from recon.matching.frames.sources import Sources
from recon.model.freed_memory import give_back
from recon.model.headway import Way
from recon.model.words import ControlTotal, Verdict
from recon.steps.compare.handed_night import HandedNight, handed_night, keys_needed, opened_night
from recon.steps.compare.kept_sources import sources_of_night
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import INPUTS
from recon.steps.ground.sealed_night import sealed_night
from recon.store.nights.runs import Run

BESIDE_FROM_ORDERS = 100_000
"""Of fewer orders another process costs more than it gives: it takes a second to begin."""


def is_made_beside(run: Run, *, environment: Environment) -> bool:
    """Whether another process is to make the other side of a run, and it is worth it."""
    if not environment.workers.helps:
        return False
    return orders_read(run, environment=environment) >= BESIDE_FROM_ORDERS


def orders_read(run: Run, *, environment: Environment) -> int:
    """How many orders a run sealed before money; 0 where it sealed none."""
    with environment.store.reading() as connection:
        inputs = sealed_night(connection, run, environment=environment).steps.get(INPUTS)
    files = inputs.manifest.files if inputs else ()
    return sum(entry.rows for entry in files if entry.name == "orders.parquet")


@contextmanager
def made_beside(
    run: Run, *, compared: Sealed, way: Way, environment: Environment
) -> Iterator[Callable[[], str]]:
    """Let another process make the digest of the other side; given is what waits for it.

    Args:
        run: whose it is.
        compared: the step as it lies on the disk.
        way: told when it is made.
        environment: who makes it, and where the archive is.

    Raises:
        ClusterError: those who should have made it are gone.
        ArchiveError: the archive cannot be reached.
    """
    night = handed_night(run, written=[compared], environment=environment)
    needs = keys_needed(environment)
    with environment.workers.meanwhile(other_digest, night, needs=needs) as wait:

        def waited() -> str:
            digest = wait()
            way.more()
            return digest

        yield waited


def other_digest(night: HandedNight) -> str:
    """What another process does: read the files, turn their rows round, and make the digest.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is not as the night wrote it.
    """
    sources, previous = sources_of_night(opened_night(night, variables=os.environ))
    other = turned(sources)
    del sources
    give_back()
    return digest_alone(other, rules=night.rules, as_of=night.as_of, previous=previous)


def turned_round(
    sources: Sources, *, digest: Callable[[Sources], str], way: Way
) -> tuple[Sources, str]:
    """The sources as they were given, and the digest of their rows the other way round.

    They are in one order at a time: of what is given here, whoever gives it should keep nothing.
    """
    give_back()
    way.more()
    other = turned(sources)
    del sources
    give_back()
    again = digest(other)
    give_back()
    given = turned(other)
    del other
    give_back()
    way.more()
    return given, again


def turned(sources: Sources) -> Sources:
    """The same sources with the rows of every frame and the rejects the other way round."""
    names = ("orders", "gateway", "ledger", "instructions", "settlement", "universe")
    frames = {name: getattr(sources, name) for name in names}
    given = {name: upside_down(frame) for name, frame in frames.items() if frame is not None}
    turned_frames: dict[str, Any] = {**held_once(given)}
    bank = sources.bank
    if bank is not None:
        bank = replace(bank, entries=upside_down(bank.entries))
    return replace(
        sources,
        bank=bank,
        rejects=sources.rejects[::-1],
        **turned_frames,
    )


def with_same_digest(
    result: Reconciliation, *, again: Callable[[], str], run: Run
) -> Reconciliation:
    """T14: the same inputs, read in the other order, give the same digest; else NOT PROVEN."""
    name = "the same inputs again, in another order = the same result"
    total_key = (run.merchant_id, run.account_id, "", "count")
    total = ControlTotal("T14", name, *total_key, 1, int(result.digest == again()))
    verdict = result.verdict if total.passed else Verdict.NOT_PROVEN
    return replace(result, control_totals=(*result.control_totals, total), verdict=verdict)
