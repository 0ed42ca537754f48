"""A night compared in parts: by this process one after another, or by others side by side.

Each part is all rows of a stretch of order numbers. What of it stands by itself is judged in the
part and lies in its files; what is left of all parts is compared here, as a night of few rows. The
result, its files and its digest are those of one comparison of the whole.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from recon.archive.step_folder import Sealed
from recon.archive.storage import reachable
from recon.config.cluster import IN_PROCESS
from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.standing_alone import Elsewhere
from recon.model.headway import Way
from recon.model.uptime import give_back
from recon.proof.books_bridge import Books
from recon.proof.night_parts import ORDERS_PER_PART, PARTS_MIN, Gathering, has_parts, reconcile_rest
from recon.steps.compare.handed_night import handed_night, keys_needed, opened_night
from recon.steps.compare.part_work import PartDone, PartOfNight, do_part, do_part_with, part_of
from recon.steps.compare.rules_change import is_under_signed_rules
from recon.steps.compare.stretches import Stretch, rows_of_stretch, stretches
from recon.steps.files.incomplete import RowsInParts
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import INPUTS, UNREAD, SealedNight, sealed_night
from recon.store.nights.runs import Run

DONE = "judged a part"
"""A crash point."""


@dataclass(frozen=True, slots=True)
class CutNight:
    """The parts of a night before anybody does one."""

    cut: Sequence[Stretch]
    elsewhere: Elsewhere
    books: Books


def is_large(run: Run, *, environment: Environment) -> bool:
    """Whether a run sealed orders of several parts before money."""
    with environment.store.reading() as connection:
        inputs = sealed_night(connection, run, environment=environment).steps.get(INPUTS)
    files = inputs.manifest.files if inputs else ()
    orders = sum(entry.rows for entry in files if entry.name == "orders.parquet")
    return -(-orders // ORDERS_PER_PART) >= PARTS_MIN


def is_in_parts(run: Run, *, small: Sources, environment: Environment) -> bool:
    """Whether a run is compared in parts, of which `small` has what is not cut.

    Where rules moved since an approver signed, each set is held against what it was under those.
    """
    rules = environment.settings.rules
    return (
        is_large(run, environment=environment)
        and has_parts(settled=small.settlement is not None, rules=rules)
        and is_under_signed_rules(run, environment=environment)
    )


def gathered(night: SealedNight, *, small: Sources, rules: Rules) -> CutNight:
    """Cut a night into parts, and look once at each.

    Args:
        night: what is compared, as far as it is written.
        small: all sources that are not cut, and no row of the others.
        rules: how they are judged.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is not as it was written.
    """
    cut = stretches(night, orders_per_part=ORDERS_PER_PART)
    gathering, way = Gathering(small, rules=rules), Way("parts looked at", of=len(cut))
    for stretch in cut:
        gathering.see(rows_of_stretch(night, stretch))
        give_back()
        way.more()
    for number in gathering.to_see_again():
        gathering.see_again(rows_of_stretch(night, cut[number]))
    return CutNight(cut, gathering.elsewhere(), gathering.books())


def compared_in_parts(
    run: Run,
    gathered: CutNight,
    *,
    small: Sources,
    previous: Previous | None,
    compared: Sealed,
    environment: Environment,
) -> tuple[Reconciliation, RowsInParts]:
    """Do all parts of a night, compare what is left of them, and put the whole together.

    Args:
        run: whose night it is.
        gathered: its parts.
        small: as for `gathered`.
        previous: what the night before left open.
        compared: the step as it lies on the disk.
        environment: who does the parts, and where the archive is.

    Raises:
        ClusterError: those who do them are gone.
        ArchiveError: the archive cannot be reached.
    """
    handed = handed_night(run, written=[compared], environment=environment)
    asked = [PartOfNight(handed, each, gathered.elsewhere) for each in gathered.cut]
    done = _done(asked, environment=environment)
    give_back()
    night = opened_night(handed, variables=environment.variables)
    with reachable(night.storage, doing=UNREAD):
        parts = [part_of(each, small=small, night=night) for each in done]
    rules = environment.settings.rules
    result = reconcile_rest(small, parts=parts, rules=rules, as_of=run.as_of, previous=previous)
    answers: Counter[str] = Counter()
    for part in done:
        answers.update(part.answers)
    return result, RowsInParts(sum(part.orders for part in done), answers)


def _done(parts: Sequence[PartOfNight], *, environment: Environment) -> list[PartDone]:
    """The parts done by whoever does them, in their order."""
    workers, needs = environment.workers, keys_needed(environment)
    if workers.helps:
        each = workers.each(do_part, parts, needs=needs)
    else:
        here = partial(do_part_with, variables=environment.variables)
        each = IN_PROCESS.each(here, parts)
    done, way = [], Way("parts compared", of=len(parts))
    for part in each:
        done.append(part)
        give_back()
        way.more()
        environment.crash_point(DONE)
    return done
