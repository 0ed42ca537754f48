"""Where a person's word gets the desk's signature, in the transaction that notes the word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from recon.desk.endorsement import Endorsement, Kind, endorse, instant, terms_digest
from recon.desk.held_keys import SET_UP
from recon.instructions.instruction import Instruction, terms_of
from recon.instructions.money_requests import InstructionWords, WordsOf
from recon.model.errors import UsageError
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.store import Connection
from recon.store.money import endorsement_rows
from recon.store.money.endorsement_rows import Endorsed

NONCE_BITS = 128


@dataclass(frozen=True, slots=True)
class Said:
    """What a person agrees to, as far as it is not who and when."""

    kind: Kind
    subject: str
    items: Iterable[Instruction] = ()
    says: Mapping[str, str] = field(default_factory=dict)
    valid_until: datetime | None = None


def note_endorsed(
    connection: Connection, decision: Said, *, person: Person, environment: Environment
) -> None:
    """Sign and store what one person agrees to now.

    Raises:
        UsageError: this process is not the desk, so nobody's word counts here.
    """
    key = environment.desk.private
    if key is None:
        msg = (
            "this process is not the desk, so nobody's word counts here: say it through "
            "`recon desk` (RECON_DESK_SOCKET)"
            if environment.desk.public
            else f"there is no desk, so nobody's word counts: {SET_UP}"
        )
        raise UsageError(f"{msg}; nothing was changed")
    nonce = f"{environment.randomness.getrandbits(NONCE_BITS):032x}"
    word = Endorsement(
        kind=decision.kind,
        subject=decision.subject,
        items={item.instruction_id: terms_digest(terms_of(item)) for item in decision.items},
        says=decision.says,
        person=person.short,
        name=person.declared.name,
        role=person.declared.role,
        proven=person.word.authenticated,
        at=instant(person.word.at),
        valid_until=instant(decision.valid_until) if decision.valid_until else "",
        sequence=endorsement_rows.next_sequence(connection),
        nonce=nonce,
        database=endorsement_rows.named_database(connection, chance=nonce, at=person.word.at),
    )
    endorsement_rows.save(connection, endorse(word, key=key), word=word, at=person.word.at)


def words_for_signer(environment: Environment) -> WordsOf:
    """What a signing process is handed with a batch, so that it can check the rows by itself."""
    known = endorsed(environment)

    def words(instruction_ids: Sequence[str]) -> InstructionWords:
        with environment.store.reading() as connection:
            seen, signed = known.handed_on(connection, instruction_ids)
        return InstructionWords(seen, [asdict(endorsement) for endorsement in signed])

    return words


def endorsed(environment: Environment) -> Endorsed:
    """What people agreed to, as far as this process can check it."""
    return Endorsed(environment.desk)
