"""What a night read, sealed in its folder before money moves; later what it compared and came to.

Of the inputs only those are written again that do not say what was sealed before money.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import ANSWERS, SCHEMAS
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
    find_sealed,
    sealed_step,
)
from recon.archive.storage import reachable
from recon.matching.frames.sources import Previous, Sources
from recon.model.words import ControlTotal
from recon.privacy.own_files import folder_for_now, make_folder
from recon.proof.books_bridge import Books
from recon.proof.night_tables import TARIFFS, compared_tables, stored_table
from recon.proof.totals_in_sql import JOURNAL, totals_before_money
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.selection import RunReading, Selected, selected_inputs
from recon.steps.ground import night_folder
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import LEDGER
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
    bind,
    folder_of,
    links,
    newest,
    rows_of,
    sealed_night,
    storages_of,
    write,
    writing,
)
from recon.store.money import sending_rows
from recon.store.nights import facts_rows, results
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

UNREAD = "what the night read cannot be looked up"


def seal_inputs(run: Run, *, environment: Environment) -> tuple[ControlTotal, ...]:
    """Write what the run read so far, and bind it before anything is sent.

    Returns:
        T0 to T3 and T9, as SQL finds them in what was written and in what is stored.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
    """
    rules, inputs = environment.settings.rules, frozen_inputs(run, environment=environment)
    books = _bound(run, BOOKS, environment=environment)
    chosen = selected_inputs(
        run, inputs=inputs, books_rows=_ledger_rows(books), environment=environment
    )
    same = {f"{LEDGER}.parquet"} if chosen.is_ledger_whole else set()
    # What was answered until now is a step of its own, and is asked anew once money has moved.
    unwritten = {ANSWERS, *(name.removesuffix(".parquet") for name in same)}
    # A filter holds no table while the next one is made, as a loop would.
    tables = filter(lambda named: named[0] not in unwritten, chosen.tables())
    moved = {f"{INPUTS}/{name}": f"{BOOKS}/{name}" for name in sorted(same)}
    terms = Terms(
        inputs.previous_run_id,
        rules.digest,
        compared=moved,
        absent=chosen.absent,
        last_file=inputs.last_file,
    )
    sealed = write(
        run,
        INPUTS,
        parts=rows_of(tables),
        terms=terms,
        after={BOOKS: books.sha256} if same and books else {},
        environment=environment,
    )
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)
    return _totals(run, chosen, inputs=inputs, environment=environment)


def _totals(
    run: Run, chosen: Selected, *, inputs: Inputs, environment: Environment
) -> tuple[ControlTotal, ...]:
    """T0 to T3 and T9 of sealed inputs, with what only the database knows beside them."""
    with environment.store.reading() as connection:
        # Files are opened where the history bound that they are these, and not before.
        facts_rows.refuse_changed(connection)
        night = sealed_night(connection, run, environment=environment)
        files = facts_rows.of_night(connection, run)
        in_facts = facts_rows.stored_rows(files, storages=storages_of(environment))
        stored = sending_rows.stored_of_files(connection, run, in_facts=in_facts)
        reading = RunReading(connection, run, inputs, environment)
        beside = {
            SCHEMAS["steps"].path: stored_table(stored),
            SCHEMAS[ANSWERS].path: reading.answered_keys(chosen),
            JOURNAL: pa.Table.from_pandas(sending_rows.moved_of_payments(connection, run)),
        }
    with folder_for_now("recon-before-money-") as place:
        for name in ("files", "rejects", "universe"):
            content = night.as_sealed(SCHEMAS[name].path)
            beside[SCHEMAS[name].path] = pq.read_table(pa.BufferReader(content))
        for file, table in beside.items():
            make_folder((place / file).parent)
            pq.write_table(table, place / file)
        return totals_before_money(place, account=run.account)


def changed_inputs(
    run: Run, *, tables: Iterable[tuple[str, pa.Table]], environment: Environment
) -> Iterator[Rows]:
    """The files of what is compared that do not say what was sealed before money moved.

    Each is made when it is asked for.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    # What nobody bound, or somebody changed since, stands for nothing: all is written once more.
    sealed = _bound(run, INPUTS, environment=environment)
    books = _books_of(run, sealed, environment=environment)
    contents = {**_contents(books), **_contents(sealed)}
    untold = {f"{TARIFFS}.parquet"} & {*contents}

    def is_changed(part: Rows) -> bool:
        untold.discard(part.name)
        return contents.get(part.name) != part.content

    def no_tariffs() -> Iterator[Rows]:
        # Files that came since tell none: those of before are of other lines.
        if untold:
            schema = SCHEMAS[TARIFFS]
            yield Rows.of(schema.columns.empty_table(), schema=schema)

    # A filter holds no file while the next one is made, as a loop would.
    return chain(filter(is_changed, rows_of(tables)), no_tariffs())


def in_place_of(files: Iterable[str]) -> dict[str, str]:
    """Sealed file -> the file that is compared in its place, of those written anew."""
    names = (file.removesuffix(".parquet") for file in files)
    return {
        SCHEMAS[name].path: f"{COMPARED}/{name}.parquet"
        for name in names
        if SCHEMAS[name].folder == INPUTS
    }


def _ledger_rows(books: Sealed | None) -> int | None:
    """Rows of the books as they lie in the archive; None where they do not."""
    named = books.manifest.files if books else ()
    return next((entry.rows for entry in named if entry.name == f"{LEDGER}.parquet"), None)


def _books_of(run: Run, inputs: Sealed | None, *, environment: Environment) -> Sealed | None:
    """The books that sealed inputs name in place of a ledger of their own; None: they have one."""
    sha256 = inputs.manifest.about.after.get(BOOKS) if inputs else None
    if sha256 is None:
        return None
    storage = night_folder.storage_of(run, environment=environment)
    with reachable(storage, doing=UNREAD):
        return find_sealed(storage, night=folder_of(run), step=BOOKS, sha256=sha256)


def _bound(run: Run, step: str, *, environment: Environment) -> Sealed | None:
    """A step of the run as its newest link binds it, where it lies in its own place."""
    storage = night_folder.storage_of(run, environment=environment)
    with reachable(storage, doing=UNREAD):
        sealed = sealed_step(storage, folder=f"{folder_of(run)}/{step}")
    with environment.store.reading() as connection:
        bound = newest(links(connection, run.run_id))
    return sealed if sealed and sealed.sha256 == bound.get(step) else None


def _contents(sealed: Sealed | None) -> dict[str, str]:
    """File -> what its rows say; nothing of a step that is not there."""
    return {entry.name: entry.content for entry in sealed.manifest.files} if sealed else {}


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
        carried=_stored_open(begun.terms.predecessor, environment=environment),
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


def _stored_open(
    predecessor: str, *, environment: Environment
) -> tuple[int, Mapping[str, int]] | None:
    """How many breaks the night before stored as open, and what they expose by currency."""
    if not predecessor:
        return None
    with environment.store.reading() as connection:
        summary = results.load_summary(connection, predecessor)
    return (summary.rows["break"], summary.exposure) if summary else (0, {})


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
