"""A night compared in parts: by this process one after another, or by others side by side.

Each part is all rows of a stretch of order numbers. What of it is calm is judged in the part and
lies in its files; what is left of all parts is compared here, as a night of few rows. The result,
its files and its digest are those of one comparison of the whole.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import read_rows
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Part, Rows, Sealed, entry_of, whole_file
from recon.archive.storage import reachable
from recon.config.cluster import IN_PROCESS
from recon.config.rules import Rules
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.calm.elsewhere import Elsewhere
from recon.matching.frames.digest import Columns
from recon.matching.frames.sources import Previous, Sources
from recon.model.headway import Way
from recon.model.uptime import give_back
from recon.proof.books_bridge import Books
from recon.proof.night_parts import Gathering, Merged, reconcile_rest, settled_of_parts
from recon.proof.night_tables import (
    FRAMES,
    MATCHES,
    SETTLEMENT,
    TARIFFS,
    frame_of_table,
    result_tables,
    with_tariffs,
)
from recon.steps.compare.handed_night import HandedNight, handed_night, keys_needed, opened_night
from recon.steps.compare.merged_files import merged_by_others
from recon.steps.compare.part_work import PartDone, PartOfNight, do_part, do_part_with
from recon.steps.compare.rules_change import is_under_signed_rules
from recon.steps.compare.stretches import IN_STRETCHES, Stretch, rows_of_stretch, stretches
from recon.steps.files.incomplete import RowsInParts
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import INPUTS, UNREAD, SealedNight, sealed_night
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

ORDERS_PER_PART = 250_000
"""Of a night of fewer orders all rows are compared at once. The number changes no result."""
DONE = "judged a part"
"""A crash point."""


@dataclass(frozen=True, slots=True)
class CutNight:
    """The parts of a night before anybody does one."""

    cut: Sequence[Stretch]
    elsewhere: Elsewhere
    books: Books


@dataclass(frozen=True, slots=True)
class InParts:
    """What came of all parts, and what is left to compare."""

    rest: Sources
    """What is left of all parts, with all sources that are not cut."""
    done: Sequence[PartDone]
    merged: Merged
    night: HandedNight
    """As those who did them were told."""

    @property
    def rows(self) -> RowsInParts:
        """What is known of their rows."""
        answers: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        for part in self.done:
            answers.update(part.answers)
            reasons.update(part.figures.reasons)
        return RowsInParts(sum(part.orders for part in self.done), answers, reasons)


@dataclass(frozen=True, slots=True)
class RestCompared:
    """The result of a night in parts."""

    result: Reconciliation
    rest: Reconciliation
    """Of what is left alone, whose rows the files of the parts do not have."""


def is_large(run: Run, *, environment: Environment) -> bool:
    """Whether a run sealed more orders before money than one part has."""
    with environment.store.reading() as connection:
        inputs = sealed_night(connection, run, environment=environment).steps.get(INPUTS)
    files = inputs.manifest.files if inputs else ()
    orders = sum(entry.rows for entry in files if entry.name == "orders.parquet")
    return orders > ORDERS_PER_PART


def is_in_parts(run: Run, *, inputs: Inputs, environment: Environment) -> bool:
    """Whether a run is compared in parts.

    Where the books have a fee of each payment, groups of the settlement are as many as payments,
    and nothing could be summed up; and where rules moved since an approver signed, each set is held
    against what it was under those.
    """
    if not is_large(run, environment=environment):
        return False
    if inputs.settlement and environment.settings.rules.ledger.fees_per == "payment":
        return False
    return is_under_signed_rules(run, environment=environment)


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


def parts_done(
    run: Run, gathered: CutNight, *, small: Sources, compared: Sealed, environment: Environment
) -> InParts:
    """Do all parts of a night; what they wrote lies there until somebody removes it.

    Args:
        run: whose night it is.
        gathered: its parts.
        small: as for `gathered`.
        compared: the step as it lies on the disk.
        environment: who does the parts, and where the archive is.

    Raises:
        ClusterError: those who do them are gone.
        ArchiveError: the archive cannot be reached.
    """
    handed = handed_night(run, written=[compared], environment=environment)
    parts = [PartOfNight(handed, each, gathered.elsewhere) for each in gathered.cut]
    done = _done(parts, environment=environment)
    give_back()
    night = opened_night(handed, variables=environment.variables)
    with reachable(night.storage, doing=UNREAD):
        rest = _rest(small, done=done, night=night)
    merged = Merged.of([part.files for part in done], storage=night.storage)
    return InParts(rest, done, merged, handed)


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


def _rest(small: Sources, *, done: Sequence[PartDone], night: SealedNight) -> Sources:
    """What is left of all parts, with all sources that are not cut."""
    frames: dict[str, Any] = {}
    for name in IN_STRETCHES:
        field, columns = FRAMES[name]
        if getattr(small, field) is not None:
            left = [_left(part, name=name, night=night) for part in done]
            frames[field] = pd.concat(left, ignore_index=True)[[*columns]]
    figures = [part.figures for part in done]
    lines = settled_of_parts(frames.get(SETTLEMENT), parts=figures)
    return replace(small, **{**frames, SETTLEMENT: lines})


def _left(part: PartDone, *, name: str, night: SealedNight) -> pd.DataFrame:
    """What of a source is left of a part."""
    frame = frame_of_table(_table(part, name=name, night=night))
    if name != SETTLEMENT:
        return frame
    has_tariffs = entry_of(part.files, name=f"{TARIFFS}.parquet") is not None
    tariffs = _table(part, name=TARIFFS, night=night) if has_tariffs else None
    return with_tariffs(frame, table=tariffs)


def _table(part: PartDone, *, name: str, night: SealedNight) -> pa.Table:
    file = f"{name}.parquet"
    content = whole_file(night.storage, part.files, name=file)
    return read_rows(content, name=f"{part.files.folder}/{file}")


def rest_compared(
    parts: InParts, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> RestCompared:
    """The rest compared, and put together with the parts."""
    both = _WithRest(parts.merged)
    result = reconcile_rest(
        parts.rest,
        parts=[part.figures for part in parts.done],
        merged=both,
        rules=rules,
        as_of=as_of,
        previous=previous,
    )
    result.make_rows()
    give_back()
    rest = replace(
        result,
        every_match=Deferred(lambda: both.rest[MATCHES]),
        match_columns=None,
    )
    return RestCompared(result, rest)


def files_of_parts(
    compared: RestCompared, parts: InParts, *, environment: Environment
) -> Iterable[Part]:
    """The files of the result, with the rows of parts and rest in one order.

    Raises:
        ClusterError: those who merge them are gone.
        ArchiveError: the archive cannot be reached.
    """
    tables = result_tables(compared.rest)
    if environment.workers.helps:
        return merged_by_others(
            tables,
            night=parts.night,
            parts=[part.files for part in parts.done],
            environment=environment,
        )
    merged = parts.merged

    def rows(named: tuple[str, pa.Table]) -> Rows:
        name, table = named
        if name in merged.parts:
            return merged.file(name, rest=table)
        return Rows.of(table, schema=SCHEMAS[name])

    # A map holds no table while its rows are written, as a loop would.
    return map(rows, tables)


class _WithRest:
    """Rows of parts and rest, and what was said of the rest."""

    def __init__(self, merged: Merged) -> None:
        self._merged = merged
        self.rest: dict[str, pd.DataFrame] = {}

    def columns(self, section: str, *, rest: pd.DataFrame) -> Columns:
        """See night_parts.RowsOfParts."""
        self.rest[section] = rest
        return self._merged.columns(section, rest=rest)
