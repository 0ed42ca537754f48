"""Where the statements of a bank come from, as it is declared in merchants.toml.

The keys are those of the order files: a folder, what is fetched into it from elsewhere, which files
must be there for a night, and how they are written. What the bank is stands in rules.toml.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from recon.config.declared import DeclaredTable, declared
from recon.config.file_layouts import FileLayout
from recon.config.file_sources import ExpectedFile, RemoteSource
from recon.config.rules import Rules
from recon.model.errors import ConfigurationError
from recon.privacy.shown_text import printable


class BankFolder(DeclaredTable):
    """The statements of one bank account (`[bank."NAME"]`), for all accounts that it serves."""

    inbox: Path
    """The folder they lie in; of this bank alone."""
    layouts: tuple[FileLayout, ...] = ()
    """How tables are written; the first whose pattern fits a name holds."""
    sources: tuple[RemoteSource, ...] = ()
    """Folders elsewhere whose files are fetched into the inbox."""
    expected: tuple[ExpectedFile, ...] = ()
    """Files that must be there for a night."""


class WithInboxes(Protocol):
    """An account as it is declared."""

    @property
    def inboxes(self) -> tuple[Path, ...]:
        """Every folder in which files of the account arrive."""


def banks_of(
    tables: Mapping[str, Any], *, accounts: Mapping[str, WithInboxes], rules: Rules
) -> dict[str, BankFolder]:
    """The banks of merchants.toml; each is one of the rules, with a folder of its own.

    Raises:
        ConfigurationError: naming the bank and the key.
    """
    named = tables.get("bank", {})
    if not isinstance(named, dict):
        msg = 'merchants.toml: bank: write a table [bank."<name>"] for each bank'
        raise ConfigurationError(msg)
    folders = {inbox: name for name, account in accounts.items() for inbox in account.inboxes}
    banks = {}
    for name, value in named.items():
        where = f'merchants.toml: bank."{printable(name)}"'
        if name not in rules.bank:
            msg = f'{where}: rules.toml has no [bank."{printable(name)}"] that says its IBAN'
            raise ConfigurationError(msg)
        folder = declared(BankFolder, value, source=where)
        if folder.inbox in folders:
            msg = f"{where}: inbox is that of {folders[folder.inbox]}: give statements their own"
            raise ConfigurationError(msg)
        folders[folder.inbox] = f"the bank {name}"
        banks[name] = folder
    return banks
