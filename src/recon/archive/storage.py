"""Where nights lie: files under names with `/`, each there whole or not at all."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from recon.model.errors import ArchiveError

MAKE_WRITABLE = (
    "make the archive writable, or move all of it to where there is room and name that place in "
    "archive.toml, then start the night again"
)
"""What to do; nights need what earlier ones wrote, so an empty archive helps nobody."""
UNFINISHED = ".unfinished-"
"""How the name of a file begins that is still being written."""


class Opened(NamedTuple):
    """A file that can be read from any place."""

    file: BinaryIO
    stamp: str
    """Another one each time that the file is written."""


class Storage(Protocol):
    """A folder of this machine, or of an S3-compatible storage."""

    @property
    def shown(self) -> str:
        """Its address for people."""

    def writing(self, name: str, *, flushed: bool = True) -> AbstractContextManager[BinaryIO]:
        """A new file; it has its name once the block ended well, and then it outlives a crash.

        Not `flushed`, its content does, and its name once its folder is flushed: of many files of
        one folder nobody needs one before all are there.
        """

    def flush(self, folder: str) -> None:
        """Let the names of all files right below a folder outlive a crash."""

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def reading(self, name: str) -> AbstractContextManager[Opened]:
        """A file of which only parts are read.

        Raises:
            FileNotFoundError: there is none.
        """

    def names(self, folder: str) -> Sequence[str]:
        """Every file below a folder by its whole name, sorted; none where there is no folder."""

    def folders(self, folder: str) -> Sequence[str]:
        """The folders right below a folder by their whole names, sorted."""

    def move(self, folder: str, *, to: str) -> None:
        """Give a folder another name that nobody has."""

    def remove(self, name: str) -> None:
        """Remove a file that nothing names."""

    def clear(self, folder: str) -> None:
        """Remove a folder with all that lies below it and that nothing names, if it is there."""

    def local(self, folder: str) -> AbstractContextManager[Path]:
        """The folder as one of this machine, for whoever reads files by path."""


@contextmanager
def reachable(storage: Storage, *, doing: str) -> Iterator[None]:
    """What a storage says when it fails, as a sentence; `doing` is what was not done.

    Raises:
        ArchiveError: it cannot be reached, is full or refuses.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        msg = f"{doing}: the archive of nights {storage.shown} says: {why}"
        raise ArchiveError(msg) from error
