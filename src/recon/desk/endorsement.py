"""Endorsements: the Ed25519 signature of the approvals service on exactly what one person approved.

An endorsement is the decision of one person. Its document is a JSON object with these members, all
of them required:

- `kind`: one of `Kind`, such as "approval".
- `subject`: what it is about: the digest of a list as the person saw it, the run id of a night, an
  instruction, a month, the break of a write-off, or the stop, database or file of an override.
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
    CLOSE = "close month"
    REOPEN = "reopen month"
    ALLOW_SENDING = "allow sending"
    ACCEPT_RESTORE = "accept restore"
    EXCLUDE_FILE = "set file aside"
    RELEASE = "release night"
    """Of a run that is NOT PROVEN: it no longer holds refunds."""
    FILE = "file"
    """Has a file read again or dropped; needs one person only."""
    TAKEN_BACK = "taken_back"
    """Withdraws the person's earlier endorsement of this subject, of the kind in `says["of"]`; or
    that of somebody who left or has another role, `says["whose"]`, before the next one speaks."""


OVERRIDES = (
    *(Kind.CLOSE, Kind.REOPEN, Kind.ALLOW_SENDING),
    *(Kind.ACCEPT_RESTORE, Kind.EXCLUDE_FILE, Kind.RELEASE),
)
"""Kinds that say why."""


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

    @property
    def as_text(self) -> str:
        """The full name, and whether a one-time code proved it."""
        return named(self.name, proven=self.proven)

    @property
    def made_at(self) -> datetime:
        """When the person said it."""
        return datetime.fromisoformat(self.at)

    @property
    def ends_at(self) -> datetime:
        """Until when it waits for a second person."""
        until = self.valid_until
        return datetime.fromisoformat(until) if until else datetime.max.replace(tzinfo=UTC)

    def is_by_same(self, other: "Endorsement") -> bool:
        """Whether both are of one person, whose short name or full name may have changed."""
        return self.person == other.person or folded(self.name) == folded(other.name)


@dataclass(frozen=True, slots=True)
class Signed:
    """An endorsement as it is stored and transferred."""

    document: str
    """In canonical form."""
    signature: str
    """128 hexadecimal digits."""
    key: str
    """`key_id` of the key that signed."""


def named(name: str, *, proven: bool) -> str:
    """Return a name as reports have it: with a note unless a one-time code proved it."""
    return name if proven else f"{name} (no code proved who it was)"


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
    return parsed(signed.document)


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
    about = [each for each in endorsements if instruction_id in each.items]
    approvals = [
        each
        for each in about
        if each.kind is Kind.APPROVAL
        and each.items[instruction_id] == digest
        and (at is None or each.valid_until >= instant(at))
    ]
    ends = [each for each in about if each.kind is not Kind.APPROVAL]
    problems = [
        state_of_decision(
            [*approvals, *ends], Kind.APPROVAL, subject=subject, must_be_proven=must_be_proven
        ).problem
        for subject in dict.fromkeys(each.subject for each in approvals)
    ]
    return min(problems, key=len, default=NOBODY)


def is_filled_in(seen: Mapping[str, str | int], *, now: Mapping[str, str | int]) -> bool:
    """Return whether terms are those that people saw, except for values that a claim fills in."""
    may = set(FILLED_IN) - ({"transaction_id"} if seen.get("transaction_id") else set())
    names = {*seen, *now} - may
    return all((seen.get(name) or "") == (now.get(name) or "") for name in names)


NOBODY = "the desk endorsed it for nobody"
_MUST_EQUAL = ("verdict", "workbook_sha256", "digest", "currency", "minor_units")


@dataclass(frozen=True, slots=True)
class DecisionState:
    """What people have said about one subject."""

    waiting: tuple[Endorsement, ...] = ()
    """What waits for a second person, the oldest first; it may have expired."""
    pairs: tuple[tuple[Endorsement, Endorsement], ...] = ()
    """Each two people who said the same, in order."""
    problem: str = NOBODY
    """Why no two people agree; "" if some do."""


def state_of_decision(
    statements: Iterable[Endorsement], kind: Kind, *, subject: str, must_be_proven: bool
) -> DecisionState:
    """Return what people have agreed on: the one rule for every decision of two people.

    Two agree if they differ in short and in full name, at least one is an approver, both say the
    same (in two roles, if they name any), and the second speaks while the first waits. A statement
    waits until it expires, its person speaks again or takes it back, or, of a list, somebody
    rejects some of it. Other than a verdict on a doubt, it ends too when the other differs.

    Args:
        statements: Endorsements, which may include other kinds and subjects.
        kind: Of the decision.
        subject: Of the decision.
        must_be_proven: Whether only endorsements proven by a one-time code count.
    """
    made: list[Endorsement] = []
    waiting: list[Endorsement] = []
    pairs: list[tuple[Endorsement, Endorsement]] = []
    problem = NOBODY
    for each in sorted(statements, key=lambda statement: statement.sequence):
        if kind is Kind.APPROVAL and each.kind is Kind.REJECTION:
            if any(not each.items.keys().isdisjoint(first.items.keys()) for first in made):
                made, waiting, pairs, problem = [], [], [], NOBODY
            continue
        is_withdrawal = each.kind is Kind.TAKEN_BACK and each.says.get("of") == kind
        if each.subject != subject or not (is_withdrawal or each.kind is kind):
            continue
        if is_withdrawal:
            whose = each.says.get("whose", each.person)
            waiting = [
                first
                for first in waiting
                if first.person != whose and ("whose" in each.says or not first.is_by_same(each))
            ]
            continue
        if must_be_proven and not each.proven:
            continue
        waiting = [
            first
            for first in waiting
            if not first.is_by_same(each) and (kind is Kind.DECISION or _is_alike(first, each))
        ]
        alike = [first for first in made if _is_alike(first, each)]
        others = [first for first in alike if not first.is_by_same(each)]
        found = {first.sequence: _why_not(first, each, waiting=waiting) for first in others}
        alone = f"the desk endorsed it for {[*alike, each][0].name} alone"
        problem = [alone, *found.values()][-1]
        first = next((first for first in others if not found[first.sequence]), None)
        if first is None:
            waiting.append(each)
        else:
            pairs.append((first, each))
            waiting = []
        made.append(each)
    return DecisionState(tuple(waiting), tuple(pairs), "" if pairs else problem)


def _is_alike(first: Endorsement, second: Endorsement) -> bool:
    """Whether two statements on one subject say the same, in two roles if they name any."""
    role = first.says.get("role", "")
    is_other_role = not role or role != second.says.get("role") or first.is_by_same(second)
    return is_other_role and essence_of(first.says) == essence_of(second.says)


def essence_of(says: Mapping[str, str]) -> tuple[str, ...]:
    """Return what two people must say alike; the rest, such as the reason, is each one's own."""
    return tuple(says.get(name, "") for name in _MUST_EQUAL)


def _why_not(first: Endorsement, second: Endorsement, *, waiting: Sequence[Endorsement]) -> str:
    """Why the second statement does not complete the first, of another person; "" if it does."""
    if "approver" not in {first.role, second.role}:
        return "the desk endorsed it for no approver"
    if first not in waiting:
        why = "was taken back"
    elif first.valid_until and second.at > first.valid_until:
        why = "had run out"
    else:
        return ""
    return f"the word of {first.name} {why} when {second.name} said the same"


def parsed(document: str) -> Endorsement:
    """Return the endorsement in a document, for display where no key is known.

    Raises:
        EndorsementError: The document is not an endorsement.
    """
    try:
        fields_read: dict[str, Any] = json.loads(document)
        if set(fields_read) != {field.name for field in fields(Endorsement)}:
            _refuse("its document has other members than an endorsement")
        made = Endorsement(**fields_read | {"kind": Kind(fields_read["kind"])})
        _ = made.made_at, made.ends_at, {**made.items}, {**made.says}
    except (ValueError, TypeError):
        _refuse("its document is not one of an endorsement")
    if canonical(made) != document:
        _refuse("its document is not in canonical form")
    return made


def _refuse(why: str) -> NoReturn:
    msg = f"an endorsement does not hold: {why}"
    raise EndorsementError(msg)
