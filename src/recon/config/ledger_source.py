"""Where the ledger of an account is read, as it is declared in merchants.toml."""

from pathlib import Path

from pydantic import Field, SecretStr, model_validator

from recon.config.declared import DeclaredTable
from recon.config.file_layouts import FileLayout
from recon.config.rules import ZoneText

_OF_AN_INBOX = frozenset({"files", "whole_file", "control_file", "done_file"})


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
