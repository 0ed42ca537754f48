"""The ledger, read once per run and kept, so that both sides of a comparison see the same books."""

from pathlib import Path

from recon.errors import SourceUnreadableError
from recon.file_layouts import STANDARD
from recon.foreign_bytes.opening import CHANGED, FileBytes, read_bytes
from recon.foreign_bytes.raw_table import refuse
from recon.ledger import Ledger, read_ledger
from recon.order_file import keep
from recon.settings import AccountSettings
from recon.steps.environment import Environment
from recon.steps.settling import still_written
from recon.store import ledger_rows, order_rows
from recon.store.runs import Run

EXTRACT_NAME = "ledger.jsonl"
"""What a query gave, as a file of the archive."""


def keep_ledger(run: Run, *, environment: Environment) -> str:
    """Read the account's ledger into the run; why the archive did not take it, in a sentence.

    Raises:
        SourceMissingError: its file does not exist.
        SourceUnreadableError: it cannot be read, or is still being written.
        OutputError: the archive cannot be written.
    """
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    source = account.ledger
    if source is None:
        return ""
    if source.path is not None:
        growing = still_written([source.path], account=account, environment=environment)
        for path, why in growing.items():
            msg = f"{path} {why}"
            raise SourceUnreadableError(msg)
    ledger = read_ledger(
        source, environment=environment.variables, rules=environment.settings.rules
    )
    private = _archive(ledger, account=account)
    with environment.store.writing() as connection:
        ledger_rows.save(connection, run.run_id, entries=ledger.entries, source=ledger.source_file)
        order_rows.insert_rejects(connection, ledger.rejects, run_id=run.run_id, file_id=None)
    return f" Not archived: {ledger.source_file.name}: {private}." if private else ""


def _archive(ledger: Ledger, *, account: AccountSettings) -> str:
    """Keep by its hash what was read; why it was not kept, or ""."""
    if account.archive is None or account.ledger is None:
        return ""
    sha256, path = ledger.source_file.sha256, account.ledger.path
    if path is None:
        extract = FileBytes(Path(EXTRACT_NAME), ledger.extract, sha256)
        return keep(extract, archive=account.archive, layout=STANDARD) if ledger.extract else ""
    file = read_bytes(path)
    if file.sha256 != sha256:
        refuse(path.name, CHANGED)
    return keep(file, archive=account.archive, layout=account.ledger.layout or STANDARD)
