"""Endorsements: the desk's Ed25519 signature over exactly what one person agreed to.

An endorsement is one person's word. Its document is one JSON object of these members, all of them
always there:

- `kind`: one of `Kind`, such as "approval".
- `subject`: what the word is about: of a list its digest as people saw it, of a night its run id,
  of an override what is overridden, of a write-off the break.
- `items`: {instruction id: `terms_digest` of it}; {} where the word is about no instructions.
- `says`: {name: text} that belongs to the word, such as the SHA-256 of the workbook that is signed.
- `person`, `name`, `role`: short name, full name and role in approvers.toml when they spoke.
- `proven`: whether a one-time code proved that it was them. Towards money that is real it must.
- `at`, `valid_until`: instants, ISO 8601 in UTC with microseconds; `valid_until` is "" for ever.
- `sequence`: a whole number, 1, 2, 3 ... over all endorsements of one database.
- `nonce`: 32 hexadecimal digits of chance.
- `database`: hash of the first link of the history in which it was said; it counts in no other.

What is signed are the bytes `TAG` + the document in canonical form: keys sorted, no white space,
UTF-8, nothing escaped that need not be. What travels and is stored is `Signed`: that very text, the
signature and the id of the key, both in hexadecimal. Whoever has the public key can then check
alone that a row is in a list that people endorsed: `opened` each `Signed`, then `row_problem`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from recon.config.approvers import folded
from recon.model.errors import EndorsementError

TAG = b"recon endorsement v2\n"
"""Domain separation: no other signature of this key can be taken for an endorsement."""
TERMS_TAG = b"recon terms v1\n"
KEY_ID_CHARACTERS = 16
DOCUMENT_CHARACTERS_MAX = 64 * 1024 * 1024
"""Of one document: a list of half a million instructions."""
FILLED_IN = ("transaction_id", "payment_amount")
"""Terms that a claim fills in from the gateway's answer: the payment, where nobody named it, and
its own amount, which stands beside the amount that moves."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Kind(StrEnum):
    """What a person can agree to."""

    APPROVAL = "approval"
    REJECTION = "rejection"
    DECISION = "decision"
    WRITE_OFF = "write_off"
    SIGN_OFF = "sign_off"
    OVERRIDE = "override"
    """The end of a stop or of a night's hold, a restored database that counts, a file set aside."""
    FILE = "file"
    """A file is read again, or let go; one person's word."""
    TAKEN_BACK = "taken_back"
    """An earlier word counts no more; `says` has its kind under `of`, it has the same subject."""


@dataclass(frozen=True, slots=True)
class Endorsement:
    """One person's word; the module says what each member is."""

    kind: Kind
    subject: str
    items: Mapping[str, str]
    says: Mapping[str, str]
    person: str
    name: str
    role: str
    proven: bool
    at: str
    valid_until: str
    sequence: int
    nonce: str
    database: str


@dataclass(frozen=True, slots=True)
class Signed:
    """An endorsement as it is stored and handed on."""

    document: str
    """In canonical form."""
    signature: str
    """128 hexadecimal digits."""
    key: str
    """`key_id` of the key that signed."""


def canonical(endorsement: Endorsement) -> str:
    """The document: the one text that stands for an endorsement."""
    return _CANONICAL.encode(asdict(endorsement))


def endorse(endorsement: Endorsement, *, key: Ed25519PrivateKey) -> Signed:
    """Sign one person's word."""
    document = canonical(endorsement)
    signature = key.sign(TAG + document.encode()).hex()
    return Signed(document, signature, key_id(key.public_key()))


def opened(signed: Signed, *, key: Ed25519PublicKey) -> Endorsement:
    """The endorsement behind a signature that holds.

    Raises:
        EndorsementError: the signature is not this key's over this document, or the document is
            not one.
    """
    if len(signed.document) > DOCUMENT_CHARACTERS_MAX:
        _refuse(f"its document is longer than {DOCUMENT_CHARACTERS_MAX} characters")
    try:
        key.verify(bytes.fromhex(signed.signature), TAG + signed.document.encode())
    except (InvalidSignature, ValueError):
        _refuse("its signature is not the desk's")
    return _parsed(signed.document)


def terms_digest(terms: Mapping[str, str | int]) -> str:
    """What one instruction would send, in 64 hexadecimal digits (`instruction.terms_of`)."""
    given = {name: value for name, value in terms.items() if value}
    return hashlib.sha256(TERMS_TAG + _CANONICAL.encode(given).encode()).hexdigest()


def key_id(key: Ed25519PublicKey) -> str:
    """By which a public key is named."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:KEY_ID_CHARACTERS]


def instant(at: datetime) -> str:
    """An instant as a document has it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def row_problem(
    instruction_id: str,
    *,
    terms: Mapping[str, str | int],
    endorsements: Iterable[Endorsement],
    must_be_proven: bool,
    at: datetime | None = None,
) -> str:
    """Why two people's approval does not cover a row with these terms; "" when it does.

    Two different people, one of them an approver, must have approved one and the same list that
    has this row with exactly these terms. A later rejection ends every earlier approval, and who
    took a word back before the other spoke gave none.

    Args:
        instruction_id: the row.
        terms: what it would send, as people saw it; `is_filled_in` compares it with what leaves.
        endorsements: those that were opened; of other kinds and lists may be among them.
        must_be_proven: whether only words count that a one-time code proved.
        at: the instant at which they must still hold; None asks only whether they were given.
    """
    digest = terms_digest(terms)
    about = [endorsement for endorsement in endorsements if instruction_id in endorsement.items]
    # Whoever rejected it later took every earlier yes back.
    no = max(
        (statement.sequence for statement in about if statement.kind is Kind.REJECTION), default=0
    )
    statements = [
        statement
        for statement in about
        if statement.kind is Kind.APPROVAL
        and statement.sequence > no
        and statement.items[instruction_id] == digest
    ]
    if at is not None:
        statements = [statement for statement in statements if statement.valid_until >= instant(at)]
    lists: dict[str, list[Endorsement]] = {}
    for statement in statements:
        lists.setdefault(statement.subject, []).append(statement)
    problems = [
        endorsements_problem(
            listed,
            must_be_proven=must_be_proven,
            ended_by=taken_back(about, kind=Kind.APPROVAL, subject=subject),
        )
        for subject, listed in lists.items()
    ]
    return min(problems, key=len, default="the desk endorsed it for nobody")


def is_filled_in(seen: Mapping[str, str | int], *, now: Mapping[str, str | int]) -> bool:
    """Whether terms are those that people saw, but for the payment where nobody had named it."""
    may = set(FILLED_IN) - ({"transaction_id"} if seen.get("transaction_id") else set())
    names = {*seen, *now} - may
    return all((seen.get(name) or "") == (now.get(name) or "") for name in names)


def taken_back(statements: Iterable[Endorsement], *, kind: Kind, subject: str) -> list[Endorsement]:
    """Those by which people took back what they had said of a kind about a subject."""
    return [
        statement
        for statement in statements
        if statement.kind is Kind.TAKEN_BACK
        and statement.subject == subject
        and statement.says.get("of") == kind
    ]


def endorsements_problem(
    statements: Sequence[Endorsement],
    *,
    must_be_proven: bool,
    ended_by: Sequence[Endorsement] = (),
) -> str:
    """Why some words about one thing are not those of two people; "" when they are.

    They are two different people by short and by full name, at least one of them an approver, and
    the first word stood when the second was said: it had neither run out nor been ended by its own
    person.

    Args:
        statements: of one kind and about one subject.
        must_be_proven: whether only words count that a one-time code proved.
        ended_by: words that end earlier ones of their person.
    """
    counted = sorted(
        (statement for statement in statements if statement.proven or not must_be_proven),
        key=lambda statement: statement.sequence,
    )
    if not counted:
        return "the desk endorsed it for nobody"
    pairs = [
        (first, second)
        for number, first in enumerate(counted)
        for second in counted[number + 1 :]
        if not _is_same(first, second)
    ]
    if not pairs:
        return f"the desk endorsed it for {counted[0].name} alone"
    approved = [pair for pair in pairs if "approver" in {statement.role for statement in pair}]
    if not approved:
        return "the desk endorsed it for no approver"
    current = [pair for pair in approved if not _ended(*pair, ended_by=ended_by)]
    if any(_in_time(first, second) for first, second in current):
        return ""
    first, second = (current or approved)[-1]
    why = "had run out" if current else "was taken back"
    return f"the word of {first.name} {why} when {second.name} said the same"


def _ended(first: Endorsement, second: Endorsement, *, ended_by: Sequence[Endorsement]) -> bool:
    """Whether the first person ended their word before the second was said."""
    return any(
        first.sequence < statement.sequence < second.sequence and _is_same(first, statement)
        for statement in ended_by
    )


def _is_same(first: Endorsement, second: Endorsement) -> bool:
    """Whether two words are one person's: short names change, and full names do."""
    return first.person == second.person or folded(first.name) == folded(second.name)


def _in_time(first: Endorsement, second: Endorsement) -> bool:
    """Whether the first word still stood when the second was said."""
    return not first.valid_until or second.at <= first.valid_until


def _parsed(document: str) -> Endorsement:
    try:
        fields_read: dict[str, Any] = json.loads(document)
        if set(fields_read) != {field.name for field in fields(Endorsement)}:
            _refuse("its document has other members than an endorsement")
        made = Endorsement(**fields_read | {"kind": Kind(fields_read["kind"])})
    except (ValueError, TypeError):
        _refuse("its document is not one of an endorsement")
    if canonical(made) != document:
        _refuse("its document is not in canonical form")
    return made


def _refuse(why: str) -> NoReturn:
    msg = f"an endorsement does not hold: {why}"
    raise EndorsementError(msg)
