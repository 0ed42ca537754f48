"""Where the folders of runs are archived, as declared in `archive.toml`."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from recon.config.declared import DeclaredTable, S3Access

DEFAULT_FOLDER = "archive"
"""Name of the folder where none is named: beside the database, or in the reports of an account."""
S3 = "s3://"
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=-]+)*/?")


class ArchiveSettings(S3Access):
    """Where nights are kept as folders."""

    path: str = Field(default="", max_length=300)
    """A whole path of this machine, or `s3://bucket/folder`; "": the folder `archive` beside the
    database, and where that is a server, in the account's reports."""

    checksums: bool = True
    """S3: whether objects are sent with a checksum of their own; over https it comes behind the
    content (a trailer), which older servers do not understand. What was written is read back either
    way."""

    @property
    def is_remote(self) -> bool:
        """Whether it is not a folder of this machine."""
        return self.path.startswith(S3)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        of_s3 = (self.endpoint, self.region, self.access_key_env, self.secret_key_env)
        if not self.is_remote:
            if any(of_s3) or self.secret_key_file or not self.checksums:
                msg = "endpoint, region, checksums and keys are for a path s3://bucket/folder"
                raise ValueError(msg)
            if self.path and not Path(self.path).is_absolute():
                msg = "path: neither a whole path such as /var/lib/recon/archive nor s3://bucket/…"
                raise ValueError(msg)
            return self
        if _BUCKET.fullmatch(self.path) is None or ".." in self.path:
            msg = "path: no address such as s3://bucket/folder"
            raise ValueError(msg)
        if not self.names_its_keys:
            msg = "access_key_env and one of secret_key_env and secret_key_file are needed"
            raise ValueError(msg)
        return self


class ArchiveFile(DeclaredTable):
    """All of archive.toml."""

    archive: ArchiveSettings = Field(default_factory=ArchiveSettings)
