"""The words of people that a database has, opened with the desk's public key; each is once."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, bindparam, select

from recon.desk.endorsement import Endorsement, Signed, opened
from recon.desk.held_keys import HeldKeys
from recon.model.errors import EndorsementError
from recon.store.database.history import first_hash
from recon.store.money.endorsement_links import SaidLink, said_after
from recon.store.money.endorsement_saving import digest_of
from recon.store.schema import endorsement

DOCUMENTS_AT_ONCE = 20
"""Documents that are in memory while they are opened."""
_KNOWN = select(endorsement.c.sequence).order_by(endorsement.c.sequence)
_DOCUMENTS = (
    select(
        endorsement.c.sequence,
        endorsement.c.document,
        endorsement.c.signature,
        endorsement.c.key_id,
    )
    .where(endorsement.c.sequence.in_(bindparam("wanted", expanding=True)))
    .order_by(endorsement.c.sequence)
)


class OpenedWords:
    """Words by their number, and the links of the history that say that they were said."""

    def __init__(self, keys: HeldKeys) -> None:
        """Nothing is opened yet; without a public key nothing ever is."""
        self._key = keys.public
        self._key_name = keys.name
        self._opened: dict[int, Endorsement] = {}
        self._digests: dict[int, str] = {}
        self._unopened: dict[int, str] = {}
        self._of_item: dict[str, list[Endorsement]] = {}
        self._links: list[SaidLink] = []

    def all(self, connection: Connection) -> list[Endorsement]:
        """Every word whose signature holds, oldest first."""
        self._look(connection)
        return list(self._opened.values())

    def about(self, connection: Connection, instruction_id: str) -> Sequence[Endorsement]:
        """The words about one instruction."""
        self._look(connection)
        return self._of_item.get(instruction_id, ())

    def signed(self, connection: Connection, instruction_ids: Sequence[str]) -> list[Signed]:
        """The words about some instructions, as they are handed on."""
        words = {word.sequence for it in instruction_ids for word in self.about(connection, it)}
        rows = connection.execute(_DOCUMENTS, {"wanted": sorted(words)})
        return [Signed(row.document, row.signature, row.key_id) for row in rows]

    def broken(self, connection: Connection) -> Iterator[str]:
        """Rows that are no endorsements of the desk, or are missing, in words."""
        self._look(connection)
        for sequence, why in self._unopened.items():
            yield f"endorsement {sequence}: {why}"
        numbers = sorted({*self._opened, *self._unopened})
        for number, expected in zip(numbers, range(1, len(numbers) + 1), strict=True):
            if number != expected:
                yield f"endorsement {expected} is missing (next is {number})"
                return
        if gone := self._gone_from_links(connection):
            yield f"endorsement {gone} stands in the history, and not so in its table"

    def taken_away(self, connection: Connection) -> str:
        """Why a rejection may be missing among the words that count, in words; "" when none is.

        Words from before the first that holds are another key's: nothing rests on them. The newest
        may be missing too: the history has a link of each.
        """
        self._look(connection)
        first = min(self._opened, default=0)
        newest = max((*self._opened, *self._unopened), default=0)
        numbers = range(first, newest + 1) if first else ()
        gone = next((number for number in numbers if number not in self._opened), 0)
        gone = gone or self._gone_from_links(connection)
        if not gone:
            return ""
        return (
            f"endorsement {gone} is gone or not the desk's: a rejection may be missing there, so "
            "no word of people counts (`recon verify`)"
        )

    def _gone_from_links(self, connection: Connection) -> int:
        """The first word of this key that the history knows and the table lacks; 0: none."""
        after = self._links[-1].link if self._links else 0
        self._links.extend(said_after(connection, after))
        ours = (_link for _link in self._links if _link.key == self._key_name)
        return next((our.number for our in ours if self._digests.get(our.number) != our.sha256), 0)

    def _look(self, connection: Connection) -> None:
        """Open what was added since the last look."""
        if self._key is None:
            return
        known = connection.execute(_KNOWN).scalars()
        new = [word for word in known if word not in self._opened and word not in self._unopened]
        here = first_hash(connection) if new else ""
        for start in range(0, len(new), DOCUMENTS_AT_ONCE):
            wanted = {"wanted": new[start : start + DOCUMENTS_AT_ONCE]}
            for row in connection.execute(_DOCUMENTS, wanted):
                signed = Signed(row.document, row.signature, row.key_id)
                try:
                    word = opened(signed, key=self._key)
                except EndorsementError as error:
                    self._unopened[row.sequence] = str(error)
                    continue
                self._keep(word, signed=signed, number=row.sequence, here=here)

    def _keep(self, word: Endorsement, *, signed: Signed, number: int, here: str) -> None:
        if word.sequence != number:
            self._unopened[number] = f"it is a copy of endorsement {word.sequence}"
        elif word.database != here:
            self._unopened[number] = "it was said in another database"
        else:
            self._opened[number] = word
            self._digests[number] = digest_of(signed.signature)
            for item in word.items:
                self._of_item.setdefault(item, []).append(word)
