"""Where files come from and when they are expected, as declared in merchants.toml."""

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, field_validator, model_validator

from recon.config.declared import DeclaredTable, S3Access, ZoneText, declared
from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.model.errors import ConfigurationError
from recon.privacy.displayed_text import printable

SFTP = "sftp"
S3 = "s3"

_CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
_FILE_NAME = re.compile(r"(?!\.)[^/\\*?\x00-\x1f\x7f]+")
"""One visible file of a folder, whose name cannot refer to another folder."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}")


class RemoteSource(S3Access):
    """One folder elsewhere whose files are fetched into the inbox."""

    url: str = Field(max_length=300)
    """`sftp://user@host:port/folder` or `s3://bucket/folder`."""
    files: tuple[str, ...] = ("*",)
    """Which names, with * and ?."""
    known_hosts_file: Path | None = None
    """SFTP: the server's key, as OpenSSH keeps it."""
    key_file: Path | None = None
    """SFTP: our private key without a passphrase, mode 0600."""
    password_env: str = ""
    """SFTP: the variable that holds the password."""
    password_file: Path | None = None
    """SFTP: or the file, mode 0600."""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {SFTP, S3} or not parts.hostname or parts.query or parts.fragment:
            msg = "is neither sftp://user@host/folder nor s3://bucket/folder"
            raise ValueError(msg)
        try:
            _ = parts.port
        except ValueError:
            msg = "has a port that does not exist"
            raise ValueError(msg) from None
        if parts.password is not None:
            msg = "holds a password; name its variable in password_env instead"
            raise ValueError(msg)
        if ".." in parts.path.split("/"):
            msg = "leads upwards by .."
            raise ValueError(msg)
        return url

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if urlsplit(self.url).scheme == SFTP:
            if self.known_hosts_file is None:
                msg = "known_hosts_file is needed: a server is believed only by its key"
                raise ValueError(msg)
            if sum(map(bool, (self.key_file, self.password_env, self.password_file))) != 1:
                msg = "name one of key_file, password_env and password_file"
                raise ValueError(msg)
            if not urlsplit(self.url).username:
                msg = "url: names no user"
                raise ValueError(msg)
        elif not self.names_its_keys:
            msg = "access_key_env and one of secret_key_env and secret_key_file are needed"
            raise ValueError(msg)
        return self

    @property
    def scheme(self) -> str:
        """`sftp` or `s3`."""
        return urlsplit(self.url).scheme

    @property
    def shown(self) -> str:
        """The address for people."""
        return self.url


class ExpectedFile(DeclaredTable):
    """A file that must be there for a night."""

    file: str = Field(min_length=1, max_length=200)
    """Its name; {date} is the business date as 2026-01-05, {yyyymmdd} as 20260105."""
    sender: str = Field(min_length=1, max_length=100)
    """Who is late when it is missing."""
    expected_by: str = Field(pattern=_CLOCK)
    """Local time after the business date closes, as 02:00."""
    wait_until: str = Field(default="", pattern=rf"^$|{_CLOCK}")
    """Until then a night waits for it; empty: it does not wait."""

    @field_validator("file")
    @classmethod
    def _known_placeholders(cls, name: str) -> str:
        unknown = set(_PLACEHOLDER.findall(name)) - {"{date}", "{yyyymmdd}"}
        if unknown or not _FILE_NAME.fullmatch(name):
            msg = "is no name of one file; it may hold {date} and {yyyymmdd}"
            raise ValueError(msg)
        return name

    def name(self, business_date: date) -> str:
        """The name of the file of a business date."""
        dated = self.file.replace("{date}", business_date.isoformat())
        return dated.replace("{yyyymmdd}", f"{business_date:%Y%m%d}")


def moment_after(closes: datetime, *, clock_time: str, zone: ZoneInfo) -> datetime:
    """The first moment at or after `closes` at which a local clock shows this time."""
    local = closes.astimezone(zone)
    at = datetime.combine(local.date(), time.fromisoformat(clock_time), tzinfo=zone)
    return at if at >= local else at + timedelta(days=1)


class FileFolder(DeclaredTable):
    """A folder in which files arrive, how they are written and where they come from."""

    inbox: Path
    layouts: tuple[FileLayout, ...] = ()
    """How files are written; the first whose pattern fits a name holds."""
    sources: tuple[RemoteSource, ...] = ()
    """Folders elsewhere whose files are fetched into the inbox."""
    expected: tuple[ExpectedFile, ...] = ()
    """Files that must be there for a night."""


class BankFolder(FileFolder):
    """The statements of one bank account (`[bank."NAME"]`), for all accounts that it serves."""


class WithInboxes(Protocol):
    """An account with the folders of its files."""

    @property
    def inboxes(self) -> tuple[Path, ...]:
        """All folders in which files of the account arrive."""


def banks_of(
    tables: Mapping[str, Any], *, accounts: Mapping[str, WithInboxes], rules: Rules
) -> dict[str, BankFolder]:
    """The banks of merchants.toml; each is declared in the rules and has a folder of its own.

    Raises:
        ConfigurationError: names the bank and the key.
    """
    folders = {inbox: name for name, account in accounts.items() for inbox in account.inboxes}
    banks = {}
    for name, value in bank_tables(tables, source="merchants.toml").items():
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


def bank_tables(tables: Mapping[str, Any], *, source: str) -> Mapping[str, Any]:
    """The unvalidated tables of banks.

    Raises:
        ConfigurationError: they are not tables.
    """
    named = tables.get("bank", {})
    if not isinstance(named, dict):
        msg = f'{source}: bank: write a table [bank."<name>"] for each bank'
        raise ConfigurationError(msg)
    return named


_OF_AN_INBOX = frozenset({"files", "newest_file_counts", "whole_file", "control_file", "done_file"})


class LedgerSource(DeclaredTable):
    """Where the ledger of an account is read: a file or a SQL query."""

    path: Path | None = None
    url: SecretStr | None = None
    url_env: str = ""
    query: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    """Our column name -> theirs; absent means the same name."""
    layout: FileLayout | None = None
    """How a file is written; a query says by itself how it answers."""
    zone: ZoneText = ""
    """Of times without an offset; absent: that of business dates."""

    @model_validator(mode="after")
    def _one_layout(self) -> "LedgerSource":
        if self.layout is None:
            return self
        if self.path is None or self.columns:
            msg = "a layout is of a file, and names its columns itself"
            raise ValueError(msg)
        unread = sorted(self.layout.model_fields_set & _OF_AN_INBOX)
        if unread:
            msg = f"layout.{unread[0]}: only files of an inbox have one"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _one_source(self) -> "LedgerSource":
        if sum(map(bool, (self.path, self.url, self.url_env))) != 1:
            msg = "name one of path, url and url_env"
            raise ValueError(msg)
        if bool(self.query) != (self.path is None):
            msg = "a database needs a query, and a file has none"
            raise ValueError(msg)
        return self


class GatewayLists(DeclaredTable):
    """Lists of payments as the gateway's portal exports them: of plain runs, a night asks."""

    layouts: tuple[FileLayout, ...] = ()


class SettlementFolder(FileFolder):
    """The settlement files of one account (`[accounts."<merchant>/<account>".settlement]`).

    Their folder is never that of the order files.
    """

    @model_validator(mode="after")
    def _only_what_holds(self) -> Self:
        if any(layout.trailer is not None and layout.trailer.amount for layout in self.layouts):
            msg = "layouts: trailer.amount: a settlement line has three amounts; count its rows"
            raise ValueError(msg)
        return self
