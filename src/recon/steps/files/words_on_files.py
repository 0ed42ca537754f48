"""What people say of files that nights took or refused: read it again, or let it go.

A file whose layout was corrected is the same bytes, so a night would call it known; a stray file
that cannot be read would make its night INCOMPLETE for ever. Name and reason stand in the history.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from recon.desk.endorsement import Kind
from recon.files.formats.named_bytes import sha256_of
from recon.model.errors import ReaderBrokenError, SourceUnreadableError, UsageError
from recon.model.words import SourceKind
from recon.privacy.shown_text import shown_name
from recon.steps.files.incomplete import WHOLE_FILE, absent_sha256, unread
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.store import Connection
from recon.store.database.engine import Turn
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import file_words
from recon.store.nights.file_words import FileWord, KnownFile
from recon.store.nights.runs import Run
from recon.store.schema.columns import REASON_CHARACTERS


def _note(connection: Connection, word: FileWord, *, person: Person) -> None:
    """Sign what one person says of a file, in the transaction that notes it.

    Bound to the file's hash, its account and name, what was said and why, and to the very version:
    a word that was used, or of another file, is good for nothing.
    """
    person.endorse(connection, Kind.FILE, word.sha256, says=word.says)


def counting(connection: Connection, *, environment: Environment) -> Callable[[FileWord], bool]:
    """Whether a word that the history has is one that the desk signed."""
    return partial(_is_endorsed, connection, Endorsed(environment.desk))


def _is_endorsed(connection: Connection, words: Endorsed, word: FileWord) -> bool:
    return words.is_said(connection, Kind.FILE, subject=word.sha256, says=word.says)


def unendorsed_files(connection: Connection, words: Endorsed) -> Iterator[str]:
    """Words about files that nobody said at the desk."""
    for word in file_words.all_words(connection):
        if not _is_endorsed(connection, words, word):
            yield (
                f"file {word.name} counts as {word.said} by {word.by}, but the desk did not "
                "endorse it"
            )


UNTIL = "no night tries it again, under whatever name, until somebody says `recon file --again`"


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
        known = file_words.set_aside_content(
            connection, sha256, counts=counting(connection, environment=environment)
        )
    if known is not None:
        if name not in known.names:
            with environment.store.writing() as connection:
                file_words.note_met(connection, sha256, name=name, at=environment.clock())
        msg = f"{shown} was not read: this content is set aside ({known.why}); {UNTIL}"
        raise SourceUnreadableError(msg)
    try:
        yield sha256
    except ReaderBrokenError as error:
        if sha256_of(path) != sha256:
            raise  # it was exchanged meanwhile: nobody knows which content it was
        with environment.store.writing() as connection:
            file_words.set_aside(
                connection, sha256, why=str(error), name=name, at=environment.clock()
            )
        msg = f"{error}; its content is set aside: {UNTIL}"
        raise SourceUnreadableError(msg) from None


REASON_WORDS_MIN = 2


def files_of(account: tuple[str, str], *, environment: Environment) -> list[KnownFile]:
    """The newest version of each file of an account."""
    environment.settings.account(account[0], account_id=account[1])
    with environment.store.reading() as connection:
        return file_words.newest_files(connection, account, whole_file=WHOLE_FILE)


def read_again(name: str, *, account: tuple[str, str], person: Person, reason: str) -> None:
    """Let the next night read a file once more, though its content is known or was set aside.

    Raises:
        UsageError: there is no such file, or the reason is missing.
    """
    environment = person.environment
    _refuse_unsaid(reason=reason)
    known = _known(account, environment=environment)
    with environment.store.reading() as connection:
        set_aside = file_words.contents_of(connection, (*account, name))
    if name not in known and not set_aside:
        raise _unknown(name, account=account)
    details = {"by": person.declared.name, "reason": reason.strip()}
    with environment.store.writing() as connection:
        at = environment.clock()
        words = file_words.let_read_again(
            connection, set_aside, name=(*account, name), at=at, **details
        )
        if name in known:
            words.append(
                file_words.say_again(
                    connection, known[name], account="/".join(account), at=at, **details
                )
            )
        for word in words:
            _note(connection, word, person=person)


def dismiss(name: str, *, account: tuple[str, str], person: Person, reason: str) -> KnownFile:
    """Let go of a file that could not be read, or that was expected and never came.

    Raises:
        UsageError: there is no such file, rows of it were taken, or the reason is missing.
    """
    environment = person.environment
    _refuse_unsaid(reason=reason)
    known = _known(account, environment=environment)
    if name not in known:
        raise _unknown(name, account=account)
    file = known[name]
    if file.source.kind is SourceKind.SETTLEMENT:
        msg = (
            f"{name} is a settlement file: without it nobody knows what was settled on its days; "
            "nothing was changed: ask the gateway for a correct one"
        )
        raise UsageError(msg)
    if not file.refused:
        msg = (
            f"{name} was read ({file.source.rows_accepted} rows taken): only a file that was "
            "refused whole, or never came, can be let go; nothing was changed: let a corrected "
            "version of the same name arrive"
        )
        raise UsageError(msg)
    details = {"by": person.declared.name, "reason": reason.strip()}
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        at = environment.clock()
        sha256 = absent_sha256(name, str(at), *details.values())
        nothing = unread(file.source.kind, name, sha256=sha256, rejected=0)
        word = file_words.dismiss(connection, file, nothing=nothing, at=at, **details)
        _note(connection, word, person=person)
    return file


def _known(account: tuple[str, str], *, environment: Environment) -> dict[str, KnownFile]:
    return {file.source.name: file for file in files_of(account, environment=environment)}


def _unknown(name: str, *, account: tuple[str, str]) -> UsageError:
    return UsageError(
        f"no night of {'/'.join(account)} has met a file {name} (`recon file` names them)"
    )


def _refuse_unsaid(*, reason: str) -> None:
    if len(reason.split()) < REASON_WORDS_MIN or len(reason) > REASON_CHARACTERS:
        msg = f"say why in words (--reason): {REASON_WORDS_MIN} at least; kept in the history"
        raise UsageError(msg)
