"""What the doctor reads of a merchant's own sources before it calls them well: rows, not folders.

Files are read as a night reads them, up to a size that a person waits for; of a ledger's query the
first rows, without counting and summing the rest. Nothing is stored.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from recon.config.bank_folder import BankFolder
from recon.config.file_layouts import FileLayout, layout_of
from recon.config.ledger_source import LedgerSource
from recon.config.rules import Rules
from recon.config.settings import AccountSettings, FileSettings, Settings
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.files.kinds.ledger_file import read_ledger
from recon.files.reader import bank_facts, ledger_file
from recon.model.errors import ReconError, SourceUnreadableError
from recon.model.words import Reject, SourceFile
from recon.steps.files.order_files import CheckedFile, check_file, check_settlement_file

LEDGER_ROWS_MAX = 10
"""Rows of a ledger's query; a night reads them all."""
FILES_READ_MAX = 20
"""Files of an inbox that are read; the newest ones."""
FILE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files are not read: people wait for the doctor."""
NO_LEDGER = "none: the verdict is never better than INCOMPLETE (merchants.toml, ledger)"

CheckFile = Callable[..., CheckedFile]


def ledger_told(
    source: LedgerSource | None, *, settings: Settings, variables: Mapping[str, str]
) -> str:
    """How many of the ledger's rows were read and taken.

    Raises:
        ReconError: it cannot be read, or it has rows that a night would refuse.
    """
    if source is None:
        return NO_LEDGER
    if source.path is not None:
        if not source.path.is_file():
            msg = f"{source.path} is not a file; put the books there, or correct `ledger`"
            raise ReconError(msg)
        if source.path.stat().st_size > FILE_BYTES_MAX:
            return f"{source.path}, too large to be read here"
        with ledger_file(source, rules=settings.rules) as read:
            return _ledger_in_words(read.facts.source_file, rejects=read.facts.rejects)
    ledger = read_ledger(
        source, environment=variables, rules=settings.rules, rows_max=LEDGER_ROWS_MAX
    )
    return _ledger_in_words(ledger.source_file, rejects=ledger.rejects)


def _ledger_in_words(file: SourceFile, *, rejects: tuple[Reject, ...]) -> str:
    sentence = f"{file.name}: {file.rows_accepted} of {file.rows_read} rows read can be taken"
    if not rejects:
        return sentence
    msg = f"{sentence}, {file.rows_rejected} would be refused; {_first(rejects)}"
    raise ReconError(msg)


def inbox_told(folder: Path, *, account: AccountSettings, settings: Settings) -> str:
    """How the order files that lie in the inbox would be read.

    Raises:
        ReconError: one would be refused whole, or without a single row.
    """
    return _files_told(
        folder, account=account, settings=settings, check=check_file, layouts=account.layouts
    )


def settlement_told(folder: Path, *, account: AccountSettings, settings: Settings) -> str:
    """How the settlement files that lie in their inbox would be read.

    Raises:
        ReconError: one would be refused whole, or without a single row.
    """
    layouts = account.settlement.layouts if account.settlement else ()
    return _files_told(
        folder, account=account, settings=settings, check=check_settlement_file, layouts=layouts
    )


def bank_told(folder: Path, *, bank: BankFolder, rules: Rules) -> str:
    """How the statements that lie in the inbox of a bank would be read.

    Raises:
        ReconError: one would be refused; a statement is whole or nothing.
    """
    files = inbox(folder, layouts=bank.layouts, endings=ENDINGS).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    read = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    wrong, statements, entries = [], 0, 0
    for path in read:
        layout = layout_of(path.name, layouts=bank.layouts)
        try:
            facts = bank_facts(path, rules=rules, layout=layout)
        except SourceUnreadableError as error:
            wrong.append(str(error))
            continue
        statements += len(facts.statements)
        entries += facts.source_file.rows_read
    if wrong:
        raise ReconError("; ".join(wrong))
    unread = f", {len(files) - len(read)} not read here" if len(read) < len(files) else ""
    rows = f": {statements} statements of {entries} entries add up" if read else ""
    return f"{folder}, {len(files)} files{unread}{rows}"


def _files_told(
    folder: Path,
    *,
    account: AccountSettings,
    settings: Settings,
    check: CheckFile,
    layouts: tuple[FileLayout, ...],
) -> str:
    files = inbox(folder, layouts=layouts).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    read = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    rules_of_files = FileSettings(
        accounts=settings.accounts,
        rules=settings.rules,
        review_flags=settings.gateway.review_flags,
        interface=settings.interface,
        seal_key=settings.seal_key,
    )
    wrong, accepted, rejected = [], 0, 0
    for path in read:
        try:
            checked = check(path, account=account, settings=rules_of_files)
        except SourceUnreadableError as error:
            wrong.append(str(error))
            continue
        accepted += checked.source.rows_accepted
        rejected += checked.source.rows_rejected
        if checked.rejects and not checked.source.rows_accepted:
            wrong.append(f"{path.name}: every row would be refused; {_first(checked.rejects)}")
    if wrong:
        raise ReconError("; ".join(wrong))
    unread = f", {len(files) - len(read)} not read here" if len(read) < len(files) else ""
    rows = f": {accepted} rows can be taken, {rejected} would be refused" if read else ""
    return f"{folder}, {len(files)} files{unread}{rows}"


def _first(rejects: tuple[Reject, ...]) -> str:
    reject = rejects[0]
    return f"the first in line {reject.line}, {reject.column}: {reject.reason}"
