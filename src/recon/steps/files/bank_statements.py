"""Statements of banks from their inboxes into tables: whole or not at all, each content once.

A bank may serve several accounts: whose night comes first reads a file, the others note that it is
known. Of the entries only those are kept that may be ours; a file is read again when a batch, or a
list of payments, became known since that may name one of its entries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from recon.config.file_layouts import layout_of
from recon.config.file_sources import BankFolder
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_table import refuse
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.files.reader import bank_file
from recon.files.reader.files import BankRead
from recon.matching.bank.receipts import kept_of_parts, lists_of_ours
from recon.matching.frames.bank_sources import DETAILS, BankSource, no_entries
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.words import SourceFile, SourceKind
from recon.privacy.shown_text import shown_name
from recon.steps.files.arrivals import arrivals, left, note_absent, still_written, unreadable
from recon.steps.files.words_on_files import guarded
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store.database.engine import Turn
from recon.store.nights import bank_rows, order_rows
from recon.store.nights.runs import Run

KIND = SourceKind.BANK


@dataclass(frozen=True, slots=True)
class _Bank:
    """One bank as the night of one account reads it."""

    name: str
    folder: BankFolder
    run: Run
    environment: Environment

    @property
    def accounts(self) -> frozenset[tuple[str, str]]:
        """All accounts that are paid out there."""
        return self.environment.settings.rules.bank[self.name].served


def ingest_banks(
    run: Run,
    *,
    figures: dict[str, int],
    environment: Environment,
    sleep: Callable[[float], None],
) -> str:
    """Read what is new of the banks that the account is paid out at; in sentences.

    Raises:
        SourceMissingError: the folder of a bank does not exist.
    """
    rules, words = environment.settings.rules, ""
    for name, folder in environment.settings.banks.items():
        if (run.merchant_id, run.account_id) in rules.bank[name].served:
            bank = _Bank(name, folder, run, environment)
            words += _ingest_bank(bank, figures=figures, sleep=sleep)
    return words


def _ingest_bank(bank: _Bank, *, figures: dict[str, int], sleep: Callable[[float], None]) -> str:
    folder, run, environment = bank.folder, bank.run, bank.environment
    if not folder.inbox.is_dir():
        msg = (
            f"bank.{bank.name}.inbox {folder.inbox} does not exist; create it or correct "
            "merchants.toml"
        )
        raise SourceMissingError(msg)
    prefix = bank_rows.name_of(bank.name, "")
    came = arrivals(
        run, account=folder, kind=KIND, prefix=prefix, environment=environment, sleep=sleep
    )
    waiting = inbox(folder.inbox, layouts=folder.layouts, endings=ENDINGS)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    growing = still_written(
        waiting.files, account=account, layouts=folder.layouts, environment=environment
    )
    new, sentences = 0, ""
    for path in waiting.files:
        is_new, words = _ingest_file(
            path, problem=growing.get(path, ""), bank=bank, figures=figures
        )
        new += is_new
        sentences += words
    _take_back_gone(bank, here={shown_name(path.name) for path in waiting.files})
    figures["bank_files"] = figures.get("bank_files", 0) + new
    known = len(waiting.files) - new
    words = f" {new} new files of the bank {bank.name}; {known} known or refused."
    if not waiting.files:
        words = f" No file of the bank {bank.name} has arrived."
    return words + sentences + left(waiting) + came.sentence()


def _ingest_file(
    path: Path, *, problem: str, bank: _Bank, figures: dict[str, int]
) -> tuple[bool, str]:
    """Store one file; whether it was new, and what is to be told of it."""
    shown = shown_name(path.name)
    name = bank_rows.name_of(bank.name, shown)
    layout = layout_of(path.name, layouts=bank.folder.layouts)
    run, environment = bank.run, bank.environment
    try:
        if problem:
            refuse(shown, problem)
        sha256 = sha256_of(path)
        if _is_known(bank, name=name, sha256=sha256):
            return False, ""
        rules = environment.settings.rules
        with (
            guarded(path, run=run, environment=environment, sha256=sha256),
            bank_file(path, rules=rules, layout=layout) as read,
        ):
            _save(read, bank=bank, name=name)
            notes = read.facts.notes
    except SourceMissingError:
        return False, f" {shown} was gone when it was to be read."
    except SourceUnreadableError as error:
        source, reject = unreadable(path, problem=str(error), kind=KIND, name=name)
        with environment.store.writing(turn=Turn.ORDERS) as connection:
            noted = bank_rows.newest_of(connection, run, name=name)
            if noted is None or noted.sha256 != source.sha256:
                at = environment.clock()
                order_rows.insert_file(connection, run, rejects=(reject,), source=source, at=at)
        figures["refused"] += 1
        return False, f" {shown} was refused as a whole and left where it is: {error}."
    return True, "".join(f" {note}" for note in notes)


def _is_known(bank: _Bank, *, name: str, sha256: str) -> bool:
    """Whether this content was read, by whosever night, and nothing came since that names it."""
    run, environment = bank.run, bank.environment
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        before = bank_rows.read_before(connection, name=name, sha256=sha256)
        if before is None:
            return False
        if bank_rows.told_since(connection, bank=bank.name, sha256=sha256, accounts=bank.accounts):
            return False
        noted = bank_rows.newest_of(connection, run, name=name)
        if noted is None or noted.sha256 != sha256:
            bank_rows.note_known(connection, run, source=before, at=environment.clock())
    return True


def _save(read: BankRead, *, bank: _Bank, name: str) -> None:
    """Keep the facts of the statements, and of the entries those in scope."""
    environment = bank.environment
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        batches = bank_rows.batch_ids(
            connection, accounts=bank.accounts, storages=storages_of(environment)
        )
        details = bank_rows.source_of(connection, bank.run, banks=[bank.name], until=None)
        kept = kept_of_parts(
            BankSource(no_entries(), read.facts.statements, notes=read.facts.notes),
            parts=read.parts,
            batches=batches,
            listed=lists_of_ours(_details(details)) if details else (),
            rules=environment.settings.rules,
        )
        ours = int(kept.entries["part"].eq(0).sum())
        source = _counted(read.facts.source_file, name=name, ours=ours)
        statements = tuple(replace(statement, source=name) for statement in kept.statements)
        bank_rows.save_file(
            connection,
            bank.run,
            read=replace(kept, statements=statements),
            source=source,
            bank=bank.name,
            at=environment.clock(),
        )


def _details(source: BankSource) -> BankSource:
    """Only the lists of payments."""
    lists = [at for at, statement in enumerate(source.statements) if statement.form == DETAILS]
    return replace(source, entries=source.entries[source.entries["statement"].isin(lists)])


def _counted(source: SourceFile, *, name: str, ours: int) -> SourceFile:
    """Entries of other people are left out by a rule: only their sum is kept."""
    skipped = source.rows_read - ours
    return replace(source, name=name, rows_accepted=ours, rows_skipped=skipped)


def _take_back_gone(bank: _Bank, *, here: set[str]) -> None:
    """What was refused and was taken away since: nobody waits for it any more."""
    prefix = bank_rows.name_of(bank.name, "")
    with bank.environment.store.reading() as connection:
        noted = bank_rows.not_right(connection, bank.run)
    day = bank.run.business_date
    watched = {source.shown for source in bank.folder.sources}
    watched |= {expected.name(day) for expected in bank.folder.expected}
    for name in sorted(noted):
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and own not in here | watched:
            note_absent(name, problem="", run=bank.run, environment=bank.environment, kind=KIND)
