"""What the desk remembers of its own words, in a file of its own outside every database.

The words lie in a database that others write. By the newest of them, kept here, the desk notices
that some were taken away, and never gives a number twice: a no that was deleted stays noticed.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from recon.model.durable import flush_folder
from recon.model.errors import ConfigurationError
from recon.privacy.own_files import for_owner

FILE_BYTES_MAX = 1024 * 1024
ENDING = ".spoken"
"""Behind the name of the key's file."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """The newest word of one database."""

    sequence: int
    signature: str


class Memory:
    """One file: database -> the newest word that the desk gave it."""

    def __init__(self, path: Path) -> None:
        """Remember in this file, which is made with the first word."""
        self._path = path

    def newest(self, database: str) -> Spoken | None:
        """The newest word; None where the desk never spoke.

        Raises:
            ConfigurationError: the file cannot be read, or is none of the desk's.
        """
        return self._all().get(database)

    def keep(self, database: str, spoken: Spoken) -> None:
        """Remember a word that is newer than the one before; on the disk when this returns.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        known = self._all()
        before = known.get(database)
        if before is None or before.sequence < spoken.sequence:
            self._write({**known, database: spoken})

    def forget(self, database: str) -> None:
        """Begin with what the database has.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        self._write({name: one for name, one in self._all().items() if name != database})

    def _all(self) -> dict[str, Spoken]:
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(FILE_BYTES_MAX))
            return {
                str(name): Spoken(int(one["sequence"]), str(one["signature"]))
                for name, one in found.items()
            }
        except FileNotFoundError:
            return {}
        except OSError as error:
            msg = f"the desk's memory {self._path} cannot be read: {error.strerror}"
            raise ConfigurationError(msg) from error
        except (ValueError, TypeError, KeyError, AttributeError):
            msg = f"{self._path} is not the desk's memory any more; nothing was changed"
            raise ConfigurationError(msg) from None

    def _write(self, known: dict[str, Spoken]) -> None:
        text = json.dumps({name: asdict(one) for name, one in known.items()})
        new = self._path.with_name(f"{self._path.name}.new.{os.getpid()}")
        try:
            with open(new, "w", opener=for_owner) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            flush_folder(self._path.parent)
        except OSError as error:
            msg = f"the desk's memory {self._path} cannot be written: {error.strerror}"
            raise ConfigurationError(msg) from error
