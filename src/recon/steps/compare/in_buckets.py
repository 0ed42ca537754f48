"""A night compared in buckets: one after another in this process, or in parallel by others.

A bucket is a pure function of sealed files: repeated anywhere, it gives the same. Its files are in
a folder that no history link covers until the results are sealed: a step of its own with a
manifest, named after the process that wrote it. So a worker that was taken for dead, but is not,
disturbs nobody.
"""

import hashlib
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import Rows, Sealed, rows_of, whole_file, write_step
from recon.archive.storage import reachable
from recon.config.cluster import IN_PROCESS
from recon.matching.frames.sources import Basis, Previous, Sources
from recon.matching.frames.total_rows import AccountKey
from recon.model.step_progress import WorkProgress
from recon.model.uptime import give_back
from recon.proof.buckets import (
    ORDERS_PER_BUCKET,
    ROWS_PER_ORDER,
    SECTIONS,
    BucketFigures,
    BucketRows,
    ComparedBucket,
    Cut,
    Range,
    compare_bucket,
)
from recon.proof.engine import InBuckets, has_buckets, in_buckets
from recon.proof.night_tables import ITEMS, frame_of_table, table_of
from recon.steps.compare.rules_change import is_under_signed_rules
from recon.steps.compare.stored_sources import (
    NightJob,
    cut_of_night,
    keys_needed,
    night_job,
    opened_night,
    rows_of_range,
    small_of_night,
)
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    BUCKETS,
    COMPARED,
    UNREAD,
    SealedNight,
    folder_of,
    storage_of,
)
from recon.store.nights.runs import Run

DONE = "compared a bucket"
"""A crash point."""
UNWRITTEN = (
    "a part of the comparison could not be written; what was read, answered and sent is kept: make "
    "the archive writable, then start the night again"
)
NAME_DIGITS = 12


@dataclass(frozen=True, slots=True)
class BucketOfNight:
    """What a process needs to compare one bucket."""

    night: NightJob
    within: Range
    cut: Cut
    strict: Collection[AccountKey]


@dataclass(frozen=True, slots=True)
class BucketDone:
    """The outcome of one bucket."""

    figures: BucketFigures
    files: Sealed
    """SECTIONS and items."""


def cut_night(
    run: Run,
    night: SealedNight,
    *,
    small: Sources,
    previous: Previous | None,
    environment: Environment,
) -> Cut | None:
    """Cut a night into buckets; None where it is compared whole.

    Not where the rules changed since an approver signed: each set is then compared under both.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what was written.
        StoreError: it is too large to be compared whole, and DuckDB cannot cut it.
    """
    settled, rules = small.settlement is not None, environment.settings.rules
    if not has_buckets(night.rows("orders"), settled=settled, rules=rules):
        return None
    if not is_under_signed_rules(run, environment=environment):
        return None
    return cut_of_night(
        night,
        small=small,
        previous=previous,
        rows_per_bucket=ORDERS_PER_BUCKET * ROWS_PER_ORDER,
    )


def compared_in_buckets(
    run: Run,
    night: SealedNight,
    cut: Cut,
    *,
    small: Sources,
    previous: Previous | None,
    environment: Environment,
) -> InBuckets:
    """Compare all buckets of a night and then what is left of them.

    Args:
        run: The run of the night.
        night: What is compared, as it is written.
        cut: How it is cut.
        small: All sources that are not cut, without rows of the others.
        previous: What the night before left open.
        environment: Gives the workers and the archive.

    Raises:
        ClusterError: the workers are gone.
        ArchiveError: the archive cannot be reached.
    """
    job = night_job(run, written=[night.steps[COMPARED]], environment=environment)

    def each(ranges: Sequence[Range], strict: Collection[AccountKey]) -> list[ComparedBucket]:
        jobs = [BucketOfNight(job, within, cut, strict) for within in ranges]
        done = _done(jobs, environment=environment)
        return [ComparedBucket(one.figures, partial(rows_of_bucket, night, one)) for one in done]

    return in_buckets(
        cut,
        small=small,
        each=each,
        basis=Basis(environment.settings.rules, run.as_of, previous),
    )


def _done(jobs: Sequence[BucketOfNight], *, environment: Environment) -> list[BucketDone]:
    """The compared buckets in order, by the workers or by this process."""
    workers, needs = environment.workers, keys_needed(environment)
    if workers.helps:
        each = workers.each(do_bucket, jobs, needs=needs)
    else:
        each = IN_PROCESS.each(partial(do_bucket, variables=environment.variables), jobs)
    done, progress = [], WorkProgress("parts compared", of=len(jobs))
    for bucket in each:
        done.append(bucket)
        give_back()
        progress.advance()
        environment.crash_point(DONE)
    return done


def do_bucket(job: BucketOfNight, *, variables: Mapping[str, str] | None = None) -> BucketDone:
    """Compare a bucket; the archive's keys are in `variables`, None: those of this process.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what the night wrote.
    """
    variables = os.environ if variables is None else variables
    night = opened_night(job.night, variables=variables)
    small, previous = small_of_night(night)
    figures, compared = compare_bucket(
        rows_of_range(night, job.within, small=small),
        job.cut,
        small=small,
        basis=Basis(job.night.rules, job.night.as_of, previous),
        strict=job.strict,
    )
    tables = [(name, table_of(compared.frames[name], name=name)) for name in SECTIONS]
    rows = rows_of([*tables, (ITEMS, compared.items)])
    # Compared again under a spent budget, a bucket has other rows.
    name = f"{job.within.number:05}{'s' * bool(job.strict)}"
    return BucketDone(figures, write_files(night, name=name, rows=rows))


def rows_of_bucket(night: SealedNight, done: BucketDone) -> BucketRows:
    """The rows of a bucket, read from its files.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what was written.
    """
    tables = {}
    with reachable(night.storage, doing=UNREAD):
        for name in (*SECTIONS, ITEMS):
            content = whole_file(night.storage, done.files, name=f"{name}.parquet")
            tables[name] = read_rows(content, name=f"{done.files.folder}/{name}.parquet")
    return BucketRows({name: frame_of_table(tables[name]) for name in SECTIONS}, tables[ITEMS])


def write_files(night: SealedNight, *, name: str, rows: Iterable[Rows]) -> Sealed:
    """Write the files of a bucket; those that this process has written already are used as is.

    Args:
        night: The night of the bucket.
        name: Name of the bucket.
        rows: Rows of each file, made when they are needed.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    step = night.steps[COMPARED]
    folder = f"{step.folder.rpartition('/')[0]}/{BUCKETS}"
    # A name of this process, unique among all machines.
    own = hashlib.sha256(f"{platform.node()} {os.getpid()}".encode()).hexdigest()
    after = {COMPARED: step.sha256}
    own_name = f"{name}-{own[:NAME_DIGITS]}"
    about = replace(step.manifest.about, step=own_name, after=after, absent=())
    with reachable(night.storage, doing=UNWRITTEN):
        return write_step(night.storage, night=folder, about=about, files=rows)


def remove_files(run: Run, *, environment: Environment) -> None:
    """Remove the files of a run's buckets, written by this attempt at the night or earlier ones.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing="parts of the comparison that are done could not be removed"):
        storage.clear(f"{folder_of(run)}/{BUCKETS}")
