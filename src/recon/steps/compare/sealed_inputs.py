"""What a night read, sealed in its folder before money moves; later what was compared instead."""

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.archive.step_folder import Rows, Sealed, find_sealed, sealed_step
from recon.archive.storage import reachable
from recon.proof.night_tables import TARIFFS
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.selection import selected_inputs
from recon.steps.ground import night_folder
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import LEDGER
from recon.steps.ground.night_folder import (
    BOOKS,
    INPUTS,
    Terms,
    bind,
    folder_of,
    links,
    newest,
    rows_of,
    write,
)
from recon.store.nights.runs import Run

UNREAD = "what the night read cannot be looked up"


def seal_inputs(run: Run, *, environment: Environment) -> Sealed:
    """Write what the run read so far, and bind it before anything is sent.

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
    return sealed


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
    before = {**_contents(books), **_contents(sealed)}
    untold = {f"{TARIFFS}.parquet"} & {*before}

    def is_changed(part: Rows) -> bool:
        untold.discard(part.name)
        return before.get(part.name) != part.content

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
        SCHEMAS[name].path: f"{night_folder.COMPARED}/{name}.parquet"
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
