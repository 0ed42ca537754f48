"""What the desk remembers of its own words, in a file of its own outside every database.

The words lie in a database that others write. By the newest of them, kept here, the desk notices
that some were taken away, and never gives a number twice: a no that was deleted stays noticed.
A copy beside the public key, which everybody may read and the desk alone may write, lets a night
notice it, too.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from recon.model.durable import flush_folder
from recon.model.errors import ConfigurationError
from recon.privacy.own_files import for_everybody, for_owner

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

    def __init__(self, path: Path, *, published: Path | None = None) -> None:
        """Remember in this file, which is made with the first word.

        Args:
            path: The desk's own file; of a night the published copy.
            published: Where the desk writes what everybody may read.
        """
        self._path = path
        self._published = published

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
        with self._turn():
            known = self._all()
            before = known.get(database)
            newer = before is None or before.sequence < spoken.sequence
            self._write({**known, database: spoken} if newer else known)

    def forget(self, database: str) -> None:
        """Begin with what the database has.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        with self._turn():
            self._write(
                {name: known_desk for name, known_desk in self._all().items() if name != database}
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Nobody else writes meanwhile: of two desks with one key the older word would win."""
        lock = self._path.with_name(f"{self._path.name}.lock")
        try:
            descriptor = for_owner(str(lock), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            msg = f"the desk's memory {self._path} cannot be written: {error.strerror}"
            raise ConfigurationError(msg) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _all(self) -> dict[str, Spoken]:
        try:
            with self._path.open("rb") as file:
                document = json.loads(file.read(FILE_BYTES_MAX))
            return {
                str(name): Spoken(int(desk["sequence"]), str(desk["signature"]))
                for name, desk in document.items()
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
        text = json.dumps({name: asdict(desk) for name, desk in known.items()})
        _replace(self._path, text, opener=for_owner)
        if self._published is not None:
            _replace(self._published, text, opener=for_everybody)


def _replace(path: Path, text: str, *, opener: Callable[[str, int], int]) -> None:
    new = path.with_name(f"{path.name}.new.{os.getpid()}")
    try:
        with open(new, "w", opener=opener) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        msg = f"the desk's memory {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error
