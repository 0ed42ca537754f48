"""The ledger, read once per run and stored, so that every step sees the same entries."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from recon.config.file_sources import LedgerSource
from recon.config.settings import AccountSettings
from recon.files.kinds.archive import save
from recon.files.kinds.sql_ledger import read_ledger
from recon.files.reader import ledger_file
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.proof.night_tables import table_of, table_of_frames
from recon.steps.files.arrivals import still_written
from recon.steps.files.file_decisions import guarded
from recon.steps.files.incomplete import WHOLE_FILE, absent_sha256, unread
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import LEDGER, record_sealed, write_ledger
from recon.store.nights import journal_rows, order_rows
from recon.store.nights.runs import Run

EXTRACT_NAME = "ledger.jsonl"
"""The result of a ledger query, as a file of the archive."""


class _StoredLedger(NamedTuple):
    """The ledger as it was read; only its table is in memory, no frame of all entries."""

    entries: pa.Table
    """Has the schema `ledger`."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    private: str
    """Why it was not archived, or ""."""


def store_ledger(run: Run, *, environment: Environment) -> str:
    """Read the account's ledger into the run; returns sentences on what people should know of it.

    A ledger that cannot be read is noted as one rejected row, and the night goes on without it.

    Raises:
        OutputError: the archive of files cannot be written.
        ArchiveError: the archive of nights cannot be written; nothing was sent.
    """
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    source = account.ledger
    if source is None:
        return ""
    try:
        found = _read(source, run=run, account=account, environment=environment)
    except (SourceMissingError, SourceUnreadableError) as error:
        name = source.path.name if source.path else "database"
        # One rejected row represents the ledger, so that every total and every reader includes it.
        reject = Reject(SourceKind.LEDGER, name, 0, WHOLE_FILE, str(error), "")
        with environment.store.writing() as connection:
            order_rows.insert_rejects(connection, [reject], run_id=run.run_id, file_id=None)
        return f" The ledger could not be read: {error}."
    sealed = write_ledger(run, entries=found.entries, environment=environment)
    with environment.store.writing() as connection:
        journal_rows.save(connection, run.run_id, source=found.source_file)
        order_rows.insert_rejects(connection, found.rejects, run_id=run.run_id, file_id=None)
        record_sealed(connection, run, sealed=[sealed], environment=environment)
    file, words = found.source_file, ""
    if found.rejects:
        first = found.rejects[0]
        words = (
            f" Of {file.rows_read} rows of {file.name} {file.rows_rejected} were refused, the "
            f"first in line {first.line}, {first.column}: {first.reason}."
        )
    return words + (f" Not archived: {file.name}: {found.private}." if found.private else "")


def _read(
    source: LedgerSource, *, run: Run, account: AccountSettings, environment: Environment
) -> _StoredLedger:
    rules, archive = environment.settings.rules, account.archive
    if source.path is None:
        ledger = read_ledger(source, environment=environment.variables, rules=rules)
        private, content = "", ledger.content
        if archive is not None and content:  # the result of a query is archived by its hash
            how = {"sha256": ledger.source_file.sha256, "private": ledger.private}
            private = save(Path(EXTRACT_NAME), **how, archive=archive, content=content)
        entries = table_of(ledger.entries, name=LEDGER)
        return _StoredLedger(entries, ledger.rejects, ledger.source_file, private)
    growing = still_written([source.path], account=account, environment=environment)
    for path, why in growing.items():
        msg = f"{path} {why}"
        raise SourceUnreadableError(msg)
    with (
        guarded(source.path, run=run, environment=environment),
        ledger_file(source, rules=rules, keep=archive is not None) as read,
    ):
        facts, private = read.facts, ""
        entries = table_of_frames(read.parts(), name=LEDGER)
    if archive is not None:
        sha256 = facts.source_file.sha256
        private = save(source.path, sha256=sha256, private=facts.private, archive=archive)
    return _StoredLedger(entries, facts.rejects, facts.source_file, private)


def unread_files(rejects: Iterable[Reject]) -> tuple[SourceFile, ...]:
    """Ledgers that could not be read, as sources with one rejected row."""
    return tuple(
        unread(SourceKind.LEDGER, reject.source, sha256=absent_sha256(reject.source, reject.reason))
        for reject in rejects
        if reject.kind is SourceKind.LEDGER and reject.column == WHOLE_FILE
    )
