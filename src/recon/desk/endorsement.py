"""Endorsements: the Ed25519 signature of the approvals service on exactly what one person approved.

An endorsement is the decision of one person. Its document is a JSON object with these members, all
of them required:

- `kind`: one of `Kind`, such as "approval".
- `subject`: what it is about: the digest of a list as the person saw it, the run id of a night,
  what an override overrides, or the break of a write-off.
- `items`: {instruction id: its `terms_digest`}; {} if it is not about instructions.
- `says`: {name: text} with further content, such as the SHA-256 of the workbook that is signed.
- `person`, `name`, `role`: short name, full name and role in approvers.toml at that time.
- `proven`: whether a one-time code proved the person's identity; required where money is real.
- `at`, `valid_until`: instants, ISO 8601 in UTC with microseconds; `valid_until` "" means for ever.
- `sequence`: an integer, 1, 2, 3 ... over all endorsements of one database.
- `nonce`: 32 random hexadecimal digits.
- `database`: hash of the first link of the database's history; it counts in no other database.

The signed bytes are `TAG` + the document in canonical form: keys sorted, no white space, UTF-8,
without unnecessary escapes. `Signed` is what is stored and transferred: that text, the signature
and the id of the key, both in hexadecimal. With the public key anybody can verify that a row is in
a list that people endorsed: apply `opened` to each `Signed`, then call `row_problem`.
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
"""Domain separation: no other signature by this key can be taken for an endorsement."""
TERMS_TAG = b"recon terms v1\n"
KEY_ID_CHARACTERS = 16
DOCUMENT_CHARACTERS_MAX = 64 * 1024 * 1024
"""Maximum length of a document; it fits a list of half a million instructions."""
FILLED_IN = ("transaction_id", "payment_amount")
"""Terms that a claim may fill in from the gateway's answer: the payment, if the instruction names
none, and the payment's own amount, which accompanies the amount that moves."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Kind(StrEnum):
    """What a person can endorse."""

    APPROVAL = "approval"
    REJECTION = "rejection"
    DECISION = "decision"
    WRITE_OFF = "write_off"
    SIGN_OFF = "sign_off"
    OVERRIDE = "override"
    """Ends a stop or a night's hold, accepts a restored database, or sets a file aside."""
    FILE = "file"
    """Has a file read again or dropped; needs one person only."""
    TAKEN_BACK = "taken_back"
    """Withdraws the person's earlier endorsement of this subject, of the kind in `says["of"]`."""


@dataclass(frozen=True, slots=True)
class Endorsement:
    """The decision of one person; the module describes each field."""

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
    """An endorsement as it is stored and transferred."""

    document: str
    """In canonical form."""
    signature: str
    """128 hexadecimal digits."""
    key: str
    """`key_id` of the key that signed."""


def canonical(endorsement: Endorsement) -> str:
    """Return an endorsement's document in canonical form."""
    return _CANONICAL.encode(asdict(endorsement))


def endorse(endorsement: Endorsement, *, key: Ed25519PrivateKey) -> Signed:
    """Sign an endorsement."""
    document = canonical(endorsement)
    signature = key.sign(TAG + document.encode()).hex()
    return Signed(document, signature, key_id(key.public_key()))


def opened(signed: Signed, *, key: Ed25519PublicKey) -> Endorsement:
    """Return the endorsement in a signed document after verifying its signature.

    Raises:
        EndorsementError: The signature is not this key's over this document, or the document is
            not an endorsement.
    """
    if len(signed.document) > DOCUMENT_CHARACTERS_MAX:
        _refuse(f"its document is longer than {DOCUMENT_CHARACTERS_MAX} characters")
    try:
        key.verify(bytes.fromhex(signed.signature), TAG + signed.document.encode())
    except (InvalidSignature, ValueError):
        _refuse("its signature is not the desk's")
    return _parsed(signed.document)


def terms_digest(terms: Mapping[str, str | int]) -> str:
    """Return a hash, 64 hexadecimal digits, of an instruction's terms (`instruction.terms_of`)."""
    given = {name: value for name, value in terms.items() if value}
    return hashlib.sha256(TERMS_TAG + _CANONICAL.encode(given).encode()).hexdigest()


def key_id(key: Ed25519PublicKey) -> str:
    """Return the id of a public key: the start of its SHA-256."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:KEY_ID_CHARACTERS]


def instant(at: datetime) -> str:
    """Return an instant as text, as documents have it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def row_problem(
    instruction_id: str,
    *,
    terms: Mapping[str, str | int],
    endorsements: Iterable[Endorsement],
    must_be_proven: bool,
    at: datetime | None = None,
) -> str:
    """Return why two people's approval does not cover a row with these terms; "" if it does.

    Two different people, one of them an approver, must have approved the same list containing this
    row with exactly these terms. A later rejection ends all earlier approvals; an approval that was
    withdrawn before the other person's does not count.

    Args:
        instruction_id: The row.
        terms: Its terms as people saw them; `is_filled_in` compares them with what is sent.
        endorsements: Verified endorsements, which may include other kinds and lists.
        must_be_proven: Whether only endorsements proven by a one-time code count.
        at: The instant at which they must be valid; None does not check validity.
    """
    digest = terms_digest(terms)
    about = [endorsement for endorsement in endorsements if instruction_id in endorsement.items]
    # A later rejection withdraws all earlier approvals.
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
    """Return whether terms are those that people saw, except for values that a claim fills in."""
    may = set(FILLED_IN) - ({"transaction_id"} if seen.get("transaction_id") else set())
    names = {*seen, *now} - may
    return all((seen.get(name) or "") == (now.get(name) or "") for name in names)


def taken_back(statements: Iterable[Endorsement], *, kind: Kind, subject: str) -> list[Endorsement]:
    """Return the withdrawals of endorsements of one kind and subject."""
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
    """Return why endorsements of one subject are not those of two people; "" if they are.

    The two must differ in short and in full name, at least one must be an approver, and the first
    endorsement must have been valid at the time of the second: neither expired nor withdrawn by its
    own person.

    Args:
        statements: Endorsements of one kind and subject.
        must_be_proven: Whether only endorsements proven by a one-time code count.
        ended_by: Endorsements that end earlier ones of the same person.
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
    """Return whether the first person withdrew theirs before the second endorsement."""
    return any(
        first.sequence < statement.sequence < second.sequence and _is_same(first, statement)
        for statement in ended_by
    )


def _is_same(first: Endorsement, second: Endorsement) -> bool:
    """Return whether two are of one person, whose short name or full name may have changed."""
    return first.person == second.person or folded(first.name) == folded(second.name)


def _in_time(first: Endorsement, second: Endorsement) -> bool:
    """Return whether the first endorsement had not expired at the time of the second."""
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
