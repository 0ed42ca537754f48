"""Files that broke their reader: set aside by their content, so that a night meets each once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recon.files.formats.named_bytes import sha256_of
from recon.model.errors import ReaderBrokenError, SourceUnreadableError
from recon.privacy.shown_text import shown_name
from recon.steps.files.file_endorsements import counting
from recon.steps.ground.environment import Environment
from recon.store.nights import broken_files
from recon.store.nights.runs import Run

UNTIL = "no night tries it again, under whatever name, until somebody says `recon file again`"


@contextmanager
def guarded(path: Path, *, run: Run, environment: Environment, sha256: str = "") -> Iterator[str]:
    """The content's hash, for a block that reads the file; one that broke its reader is not read.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it was set aside before, or is now.
    """
    sha256 = sha256 or sha256_of(path)
    shown = shown_name(path.name)
    name = (run.merchant_id, run.account_id, shown)
    with environment.store.reading() as connection:
        known = broken_files.set_aside_content(
            connection, sha256, counts=counting(connection, environment=environment)
        )
    if known is not None:
        if name not in known.names:
            with environment.store.writing() as connection:
                broken_files.note_met(connection, sha256, name=name, at=environment.clock())
        msg = f"{shown} was not read: this content is set aside ({known.why}); {UNTIL}"
        raise SourceUnreadableError(msg)
    try:
        yield sha256
    except ReaderBrokenError as error:
        if sha256_of(path) != sha256:
            raise  # it was exchanged meanwhile: nobody knows which content it was
        with environment.store.writing() as connection:
            broken_files.set_aside(
                connection, sha256, why=str(error), name=name, at=environment.clock()
            )
        msg = f"{error}; its content is set aside: {UNTIL}"
        raise SourceUnreadableError(msg) from None
