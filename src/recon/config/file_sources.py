"""From where order files come, and when they must be there (merchants.toml), as it is declared."""

import re
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from recon.config.declared import DeclaredTable, S3Access
from recon.privacy.this_machine import is_loopback

SFTP = "sftp"
S3 = "s3"

_CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
_ENDPOINT = re.compile(
    r"https?://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?/?"
)
_FILE_NAME = re.compile(r"(?!\.)[^/\\*?\x00-\x1f\x7f]+")
"""One file of a folder, not hidden; its name leads nowhere else."""
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

    @field_validator("endpoint")
    @classmethod
    def _storage(cls, endpoint: str) -> str:
        if not endpoint:
            return endpoint
        if _ENDPOINT.fullmatch(endpoint) is None:
            msg = "is no address of a storage such as https://s3.example.com:9000"
            raise ValueError(msg)
        parts = urlsplit(endpoint)
        try:
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            msg = "has a port that does not exist"
            raise ValueError(msg) from None
        if parts.scheme == "http" and not is_loopback(host):
            msg = "must be https: over http everybody on the way reads the files and the key's id"
            raise ValueError(msg)
        return endpoint

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
    """The first moment at or after `closes` when a local clock shows this time."""
    local = closes.astimezone(zone)
    at = datetime.combine(local.date(), time.fromisoformat(clock_time), tzinfo=zone)
    return at if at >= local else at + timedelta(days=1)
