"""People's words about files as the desk signs them, and whether a word is one of those.

Bound to the file's hash, its account and name, what was said and why, and to the very version: a
word that was used, or of another file, is good for nothing.
"""

from collections.abc import Callable, Iterator

from recon.desk.endorsement import Kind
from recon.steps.ground.endorsed import Said, endorsed, note_endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.store import Connection
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import file_words
from recon.store.nights.file_words import FileWord


def note_file_word(
    connection: Connection, word: FileWord, *, person: Person, environment: Environment
) -> None:
    """Sign what one person says of a file, in the transaction that notes it."""
    spoken = Said(Kind.FILE, word.sha256, says=word.says)
    note_endorsed(connection, spoken, person=person, environment=environment)


def counting(connection: Connection, *, environment: Environment) -> Callable[[FileWord], bool]:
    """Whether a word that the history has is one that the desk signed."""
    words = endorsed(environment)
    return lambda word: is_endorsed(connection, word, words=words)


def is_endorsed(connection: Connection, word: FileWord, *, words: Endorsed) -> bool:
    """Whether the desk signed a word."""
    return words.is_said(connection, Kind.FILE, subject=word.sha256, says=word.says)


def unendorsed_files(connection: Connection, words: Endorsed) -> Iterator[str]:
    """Words about files that nobody said at the desk."""
    for word in file_words.all_words(connection):
        if not is_endorsed(connection, word, words=words):
            yield (
                f"file {word.name} counts as {word.said} by {word.by}, but the desk did not "
                "endorse it"
            )
