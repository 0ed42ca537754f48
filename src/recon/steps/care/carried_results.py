"""`recon db upgrade`: results that an earlier version kept as rows become folders of nights."""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import NamedTuple, Protocol

import pandas as pd

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import find_sealed, step_problems
from recon.archive.storage import reachable
from recon.matching.frames.digest import digest_of
from recon.model.errors import ArchiveBrokenError, ConfigurationError
from recon.model.words import Clock
from recon.proof.night_tables import RESULTS as FILES
from recon.proof.night_tables import table_of
from recon.steps.care.carried_ledgers import carry_books
from recon.steps.care.carried_order_rows import carry_orders
from recon.steps.care.carried_replies import carry_answers
from recon.steps.care.carried_settlement import carry_lines
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment, environment_of
from recon.steps.ground.night_folder import RESULTS, Terms, bind, links, rows_of, storage_of, write
from recon.store import Connection
from recon.store.database import (
    carried_answers,
    carried_entries,
    carried_lines,
    carried_orders,
    carried_rows,
)
from recon.store.database.carried_answers import ANSWERED, LAST_WITH_ANSWERS
from recon.store.database.carried_entries import BOOKED, LAST_WITH_ENTRIES
from recon.store.database.carried_lines import LAST_WITH_LINES, SETTLED
from recon.store.database.carried_orders import LAST_WITH_ORDERS, STORED
from recon.store.database.carried_rows import CARRIED
from recon.store.database.engine import open_store
from recon.store.database.migrate import revision_of, upgrade
from recon.store.nights import input_rows, runs
from recon.store.nights.runs import Run

UNREAD = "the folders of earlier nights could not be looked at, so the database stays as it was"
JUDGED = ("breaks", "effects", "matches", "pending", "unverified")
"""What the digest of a result is made over, in this order."""


class _Carry(Protocol):
    """Writes rows of a run, or of a file, to the archive, unless they are there."""

    def __call__(self, name: str, /, *, environment: Environment) -> bool:
        """Whether they were written."""


class _Rows(NamedTuple):
    """Rows of an earlier version that lie in the folders of the nights now."""

    name: str
    """Under which a migration is told of which of them there are files."""
    last: str
    """The newest revision of a database that has them."""
    names: Callable[[Connection], list[str]]
    """Of the runs, or the files, that have some."""
    carry: _Carry


def upgrade_and_carry(url: str, *, variables: Mapping[str, str], clock: Clock) -> tuple[str, int]:
    """Bring a database to the newest tables; its revision now, and how many nights were carried.

    A night whose folder is there and whole keeps it. May be repeated at any point: tables with
    results go only when each of their nights has a whole folder that the history binds.

    Raises:
        ConfigurationError: nights must be carried, and the settings do not say where to.
        ArchiveError: a folder cannot be written; nothing of the rows is gone.
        StoreError: the database cannot be migrated.
    """
    known = {**variables, "RECON_DATABASE_URL": url}
    opened = partial(environment_of, known, clock=clock, signs=False, check=lambda _: None)
    kept: dict[str, list[str]] = {}
    written = 0
    for rows in ROWS:
        if _revision(url) <= rows.last:
            upgrade(url, to=rows.last, kept=kept)
        kept[rows.name] = _listed(url, rows.names)
        if not kept[rows.name]:
            continue
        with opened() as environment:
            done = [rows.carry(name, environment=environment) for name in kept[rows.name]]
        written += sum(done) if rows.name == CARRIED else 0
    return upgrade(url, kept=kept), written


def _listed(url: str, runs_of: Callable[[Connection], list[str]]) -> list[str]:
    with closing(open_store(url)) as store, store.reading() as connection:
        return runs_of(connection)


def _revision(url: str) -> str:
    with suppress(ConfigurationError), closing(open_store(url)) as store:
        return revision_of(store)
    return ""  # there is none yet; what is wrong with the address, the upgrade says


def _carry(run_id: str, *, environment: Environment) -> bool:
    """Write the results of a run to its folder, unless they are there; whether they were written.

    Raises:
        ArchiveBrokenError: what was written says something else than the rows.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        if _is_sealed(run, environment=environment):
            return False
        frames = carried_rows.result_frames(connection, run_id)
        inputs = input_rows.load(connection, run_id)
        digest = carried_rows.rules_digest(connection, run_id)
    tables = {
        name: table_of(frames[name], name=name)
        if name in frames
        else SCHEMAS[name].columns.empty_table()
        for name in FILES
    }
    sealed = write(
        run,
        RESULTS,
        parts=[*rows_of(tables.items())],
        terms=Terms(inputs.previous_run_id if inputs else "", digest),
        after={},
        environment=environment,
    )
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)
        kept = kept_results.frames(connection, run_id, names=JUDGED, environment=environment)
        if _digest(kept) != _digest(frames):
            msg = f"the results of run {run_id} are others in its folder than in the database"
            raise ArchiveBrokenError(msg)
    return True


def _is_sealed(run: Run, *, environment: Environment) -> bool:
    storage = storage_of(run, environment=environment)
    with environment.store.reading() as connection:
        bound = {link.step: link for link in links(connection, run.run_id)}
    if (link := bound.get(RESULTS)) is None:
        return False
    night = link.folder.rpartition("/")[0]
    with reachable(storage, doing=UNREAD):
        sealed = find_sealed(storage, night=night, step=RESULTS, sha256=link.sha256)
        return sealed is not None and not step_problems(storage, sealed)


def _digest(frames: Mapping[str, pd.DataFrame]) -> str:
    return digest_of([frames[name] for name in JUDGED])


ROWS = (
    _Rows(CARRIED, carried_rows.LAST_WITH_ROWS, carried_rows.nights_with_rows, _carry),
    _Rows(ANSWERED, LAST_WITH_ANSWERS, carried_answers.runs_with_answers, carry_answers),
    _Rows(BOOKED, LAST_WITH_ENTRIES, carried_entries.runs_with_entries, carry_books),
    _Rows(STORED, LAST_WITH_ORDERS, carried_orders.files_with_rows, carry_orders),
    _Rows(SETTLED, LAST_WITH_LINES, carried_lines.files_with_lines, carry_lines),
)
"""In the order in which versions gave them up."""
