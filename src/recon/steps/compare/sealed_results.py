"""What a night compared and what it came to, written to its folder before the result is kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from recon.archive.step_folder import (
    About,
    BegunStep,
    Manifest,
    Part,
    Parts,
    Rows,
    Sealed,
    begin_step,
    end_step,
)
from recon.matching.frames.sources import Previous, Sources
from recon.proof.books_bridge import Books
from recon.proof.night_tables import compared_tables
from recon.steps.compare.sealed_inputs import (
    changed_inputs,
    in_place_of,
)
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    BOOKS,
    COMPARED,
    INPUTS,
    RESULTS,
    SealedNight,
    Terms,
    about_of,
    answer_steps,
    before,
    folder_of,
    links,
    newest,
    rows_of,
    sealed_night,
    write,
    writing,
)
from recon.store.nights.runs import Run

Tables = Callable[[], Iterable[tuple[str, pa.Table]]]
"""Makes the inputs as they are compared."""


@dataclass(frozen=True, slots=True)
class WrittenInputs:
    """The step `compared` as it lies on the disk, and what the next one says of the night."""

    compared: Sealed
    terms: Terms
    bound: Mapping[str, str]
    """The manifests that the history binds, by step."""


@dataclass(frozen=True, slots=True)
class BegunInputs:
    """The step `compared` without its small tables and its manifest."""

    night: SealedNight
    """The night as it is compared: every file of its inputs can be read of it."""
    begun: BegunStep
    first: Parts
    """The files that it was begun with."""
    terms: Terms
    bound: Mapping[str, str]
    """See `WrittenInputs`."""


def begin_compared(
    run: Run,
    *,
    tables: Tables,
    absent: Sequence[str],
    predecessor: str,
    environment: Environment,
) -> BegunInputs:
    """Write of the inputs that are compared those that do not say what was sealed before money.

    Args:
        run: whose they are.
        tables: makes the inputs as they are compared.
        absent: files without a row because the source was not given at all.
        predecessor: the run that is carried forward, "" for none.
        environment: where the archive is.

    Raises:
        ArchiveError: the archive cannot be written; the night's money and answers are kept.
    """
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
        bound = newest(links(connection, run.run_id))
    came_before = {BOOKS, INPUTS, *answer_steps(night.steps)}
    steps = {step: sealed for step, sealed in night.steps.items() if step in came_before}

    def first() -> Iterator[Rows]:
        return changed_inputs(run, tables=tables(), environment=environment)

    folder, crash_point = f"{folder_of(run)}/{COMPARED}", environment.crash_point
    with writing(run, COMPARED, environment=environment) as storage:
        begun = begin_step(storage, folder=folder, parts=first, crash_point=crash_point)
    terms = Terms(
        predecessor,
        environment.settings.rules.digest,
        compared=in_place_of([entry.name for entry in begun.entries]),
        absent=absent,
    )
    about = _about(run, terms=terms, bound=bound, environment=environment)
    compared = Sealed(begun.folder, "", Manifest(about, begun.entries))
    as_compared = replace(night, steps={**steps, COMPARED: compared})
    return BegunInputs(as_compared, begun, first, terms, bound)


def end_compared(
    run: Run,
    begun: BegunInputs,
    *,
    sources: Sources,
    previous: Previous | None,
    books: Books,
    environment: Environment,
) -> WrittenInputs:
    """Write the small tables of the step `compared` and its manifest.

    Args:
        run: whose it is.
        begun: what was begun of it.
        sources: what is compared; of the frames only whether they were given.
        previous: what the night before left open.
        books: every step of the ledger's money (see books_bridge.books_of).
        environment: where the archive is.

    Raises:
        ArchiveError: the archive cannot be written; the night's money and answers are kept.
    """
    small = compared_tables(
        sources,
        rules=environment.settings.rules,
        previous=previous,
        books=books,
        account=run.account,
        is_carried=bool(begun.terms.predecessor),
    )
    with writing(run, COMPARED, environment=environment) as storage:
        compared = end_step(
            storage,
            begun.begun,
            about=_about(run, terms=begun.terms, bound=begun.bound, environment=environment),
            first=begun.first,
            rest=[*rows_of(small.items())],
            crash_point=environment.crash_point,
        )
    return WrittenInputs(compared, begun.terms, begun.bound)


def _about(run: Run, *, terms: Terms, bound: Mapping[str, str], environment: Environment) -> About:
    after = {**before(COMPARED, bound=bound), **{s: bound[s] for s in answer_steps(bound)}}
    return about_of(run, COMPARED, terms=terms, after=after, environment=environment)


def write_results(
    run: Run, parts: Iterable[Part], *, inputs: WrittenInputs, environment: Environment
) -> Sealed:
    """Write the step `results`, file after file; whoever keeps the result binds it.

    Raises:
        ArchiveError: the archive cannot be written; the night's money and answers are kept.
    """
    return write(
        run,
        RESULTS,
        parts=parts,
        terms=inputs.terms,
        after=before(RESULTS, bound={**inputs.bound, COMPARED: inputs.compared.sha256}),
        environment=environment,
    )
