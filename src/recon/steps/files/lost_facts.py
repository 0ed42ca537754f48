"""Recovery of stored rows that are missing or changed in the archive, from the file they came in.

A lost file of rows is written again only as it was: the history records its hash.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TypeVar

from recon.archive.schemas import FACTS, ORDER_FACTS, SETTLED_FACTS
from recon.archive.storage import Storage, reachable
from recon.config.file_layouts import layout_of
from recon.files.formats.named_bytes import sha256_of
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.archive import stored_place
from recon.files.reader import order_file, settlement_file
from recon.model.errors import (
    ArchiveBrokenError,
    ConfigurationError,
    FactsLostError,
    ReconError,
    SourceMissingError,
    SourceUnreadableError,
)
from recon.model.nights import Account, StepSummary
from recon.model.terms import SourceKind
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import storage_at, storages_of
from recon.store.nights import facts_rows, runs
from recon.store.nights.facts_rows import UNREAD, StoredFacts, problems_of
from recon.store.nights.settlement_rows import NAME_PREFIX

DISPLAYED_MAX = 5
"""Lost files that the doctor names one by one."""
Done = TypeVar("Done")


def reading_lost_facts(step: Callable[..., StepSummary]) -> Callable[..., StepSummary]:
    """Decorate a step to start over once missing rows were read again; its summary says so."""

    @wraps(step)
    def careful(run_id: str, *, environment: Environment, **options: object) -> StepSummary:
        notes: list[str] = []
        do = partial(step, run_id, environment=environment, **options)
        summary = _with_facts(do, notes=notes, environment=environment)
        return replace(summary, sentence=" ".join([summary.sentence, *notes]))

    return careful


def _with_facts(do: Callable[[], Done], *, notes: list[str], environment: Environment) -> Done:
    tried: set[str] = set()
    while True:
        try:
            return do()
        except FactsLostError as lost:
            if lost.path in tried:
                raise
            tried.add(lost.path)
            notes.append(_read_again(lost.path, notes=notes, environment=environment))


def missing_read_again(account: Account, *, environment: Environment) -> Iterator[str]:
    """Read again the missing rows of an inbox's files, oldest first; a sentence for each.

    A file that cannot be read again ends the step that needs it, not this one.
    """
    storage = storage_at(account, environment=environment)
    with reachable(storage, doing=UNREAD):
        there = {*storage.names(FACTS)}
    storages = storages_of(environment)
    for stored in _files_of(account, environment=environment):
        path = stored.rows.path
        if path in there or not any(problems_of(stored.rows, inbox=account, storages=storages)):
            continue  # a listing may omit files that exist
        notes: list[str] = []
        try:
            notes.append(_read_again(path, notes=notes, environment=environment))
        except ArchiveBrokenError as error:
            notes.append(f"{error}.")
        yield from notes


def check_facts(account: Account, *, environment: Environment) -> str:
    """Check that each stored file of an inbox's rows is there; `recon verify` reads them too.

    Raises:
        ReconError: one is missing or of another size; names each, with its source or what to do.
    """
    files = _files_of(account, environment=environment)
    storage = storage_at(account, environment=environment)
    with reachable(storage, doing=UNREAD):
        lost = [
            f"{stored.rows.path} of the archive is gone or was changed: "
            + _way_out(stored, environment=environment)
            for stored in files
            if not _is_there(stored, storage=storage)
        ]
    if lost:
        more = f"; and {len(lost) - DISPLAYED_MAX} more (`recon verify`)" * (
            len(lost) > DISPLAYED_MAX
        )
        raise ReconError("; ".join(lost[:DISPLAYED_MAX]) + more)
    return f"{len(files)} files of rows are there (`recon verify` reads them)"


def _is_there(stored: StoredFacts, *, storage: Storage) -> bool:
    with suppress(OSError), storage.reading(stored.rows.path) as opened:
        return opened.file.seek(0, os.SEEK_END) == stored.size_bytes
    return False


def _files_of(account: Account, *, environment: Environment) -> list[StoredFacts]:
    """The stored files of rows of an inbox, oldest first, each once."""
    with environment.store.reading() as connection:
        every = [each for each in facts_rows.every(connection) if each.inbox == account]
    return [*{each.rows.path: each for each in reversed(every)}.values()][::-1]


def _read_again(path: str, *, notes: list[str], environment: Environment) -> str:
    """Write a stored file of rows again; returns a sentence on it.

    Raises:
        ArchiveBrokenError: no source gives it as it was; the message says what to do.
    """
    with environment.store.reading() as connection:
        of_one = [each for each in facts_rows.every(connection) if each.rows.path == path]
    way_out = f"put {path} back from a backup of the archive"
    for stored in of_one:
        source = _source(stored, environment=environment)
        if source is None:
            way_out = _way_out(stored, environment=environment)
            continue
        again = partial(_planned_again, stored, source=source, environment=environment)
        written = _with_facts(again, notes=notes, environment=environment)
        if written is not None and written.rows.path == path:
            return f"{path} of the archive was gone or changed, and was read again from {source}."
        way_out = (
            f"{source} is read otherwise today than it was (layout, rules or program): put {path} "
            "back from a backup of the archive, then start the night again"
        )
    msg = f"{UNREAD}: {path} of the archive is gone or was changed: {way_out}"
    raise ArchiveBrokenError(msg)


def _planned_again(
    stored: StoredFacts, *, source: Path, environment: Environment
) -> StoredFacts | None:
    account = environment.settings.account(stored.inbox[0], account_id=stored.inbox[1])
    rules, name = environment.settings.rules, stored.name
    storage = storage_at(stored.inbox, environment=environment)
    with environment.store.reading() as connection:
        run = runs.get(connection, stored.run_id)
        if stored.kind is SourceKind.ORDERS:
            layout = layout_of(name, layouts=account.layouts)
            with order_file(source, rules=rules, layout=layout, keep=False) as read:
                orders = facts_rows.written(
                    run.business_date,
                    (orders for orders, _ in read.parts()),
                    schema=ORDER_FACTS,
                    storage=storage,
                )
                return orders and orders.by(stored.sender).facts
        layouts = account.settlement.layouts if account.settlement else ()
        layout = layout_of(name.removeprefix(NAME_PREFIX), layouts=layouts)
        lines, _ = settlement_file(source, rules=rules, layout=layout)
        settled = facts_rows.written(
            run.business_date, [lines], schema=SETTLED_FACTS, storage=storage
        )
        return settled.facts if settled else None


def _source(stored: StoredFacts, *, environment: Environment) -> Path | None:
    """Path of the original file: in its inbox, under whatever name, or in the archive."""
    name = stored.name.removeprefix(NAME_PREFIX)
    with suppress(ConfigurationError, SourceMissingError, SourceUnreadableError):
        account = environment.settings.account(stored.inbox[0], account_id=stored.inbox[1])
        declared = account if stored.kind is SourceKind.ORDERS else account.settlement
        paths = [declared.inbox / name, *inbox(declared.inbox).files] if declared else []
        if account.archive is not None:
            paths.append(stored_place(account.archive, sha256=stored.source_sha256, name=name))
        for path in paths:
            with suppress(SourceMissingError, SourceUnreadableError):
                if sha256_of(path) == stored.source_sha256:
                    return path
    return None


def _way_out(stored: StoredFacts, *, environment: Environment) -> str:
    """How a lost file of rows is recovered, or what people should do."""
    if source := _source(stored, environment=environment):
        return f"the next night reads it again from {source}"
    name, path = stored.name.removeprefix(NAME_PREFIX), stored.rows.path
    return (
        f"put {name} with the SHA-256 {stored.source_sha256} into its inbox again, or {path} back "
        "from a backup of the archive, then start the night again"
    )
