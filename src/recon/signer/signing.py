"""Decides what is signed: queries, what two people endorsed, and what the signer's limits allow.

A list is signed completely or not at all. A row that was signed once is signed again with the same
signature, so that an interrupted night can be resumed.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recon.desk.endorsement import Endorsement, Signed, is_filled_in, opened, row_problem
from recon.gateway_client.batches import Operation
from recon.gateway_client.interface import (
    GatewayInterface,
    SignedMessage,
    same_signature,
    signed_with,
)
from recon.gateway_client.messages import text_problem
from recon.model.errors import AmountError, EndorsementError, UsageError
from recon.model.money import Money, exponent
from recon.model.terms import InstructionKind
from recon.signer.configured import ANY, COUNTS_AS, RuleBounds, SignerFile, SignerSettings
from recon.signer.signature_log import SignatureLog, SignedRow

ROWS_MAX = 100
FIELDS_MAX = 200
WORDS_MAX = 1_000
"""Maximum number of endorsements in one request."""
TEXT_CHARACTERS_MAX = 8_192
NAME_CHARACTERS_MAX = 100


class SigningRow(BaseModel):
    """The grounds for one row: its instruction and the terms of that."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    instruction_id: str = Field(min_length=1, max_length=NAME_CHARACTERS_MAX)
    terms: dict[str, str | int]
    """Its terms as sent now, in the form of `instruction.terms_of`."""
    seen: dict[str, str | int] = Field(default_factory=dict)
    """Its terms as people saw them, before its payment was filled in; {}: equal to `terms`."""


class SigningEndorsement(BaseModel):
    """An endorsement of the approvals service."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    document: str
    signature: str
    key: str

    @property
    def signed(self) -> Signed:
        """The endorsement in the form that `recon.desk.endorsement` verifies."""
        return Signed(self.document, self.signature, self.key)


class Grounds(BaseModel):
    """Why money may move: the rows in order, and their endorsements."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rows: tuple[SigningRow, ...] = Field(default=(), max_length=ROWS_MAX)
    endorsements: tuple[SigningEndorsement, ...] = Field(default=(), max_length=WORDS_MAX)


class SigningRequest(BaseModel):
    """A request to sign a message, or to check a signature."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    template: str = Field(max_length=NAME_CHARACTERS_MAX)
    merchant_id: str = Field(max_length=NAME_CHARACTERS_MAX)
    account_id: str = Field(max_length=NAME_CHARACTERS_MAX)
    fields: dict[str, str] = Field(max_length=FIELDS_MAX)
    rows: tuple[dict[str, str], ...] = Field(max_length=ROWS_MAX)
    grounds: Grounds = Grounds()
    given: str = Field(default="", max_length=TEXT_CHARACTERS_MAX)
    """For a check: the received signature."""

    @property
    def account(self) -> str:
        """Merchant and account as one name."""
        return f"{self.merchant_id}/{self.account_id}"


def signing_request_of(document: Any) -> SigningRequest:
    """Validate a document as a request.

    Raises:
        UsageError: It is not a request; none of its values is quoted.
    """
    try:
        return SigningRequest.model_validate(document)
    except ValueError:
        msg = "the request is not one that a signer understands"
        raise UsageError(msg) from None


class Limits:
    """What the signer's own limits still allow, while the rows of one list are counted."""

    def __init__(
        self,
        given: SignerFile,
        signature_log: SignatureLog,
        *,
        account: str,
        kind: InstructionKind,
        at: datetime,
    ) -> None:
        """Read the limits of one account and kind, as used up at an instant."""
        self._account = given.accounts[account]
        self._name = account
        self._kind = kind
        # Kinds that use the same limit are counted together.
        self._kinds = [other for other, whose in COUNTS_AS.items() if whose is COUNTS_AS[kind]]
        self._signed = signature_log
        self._at = at
        self._used: dict[str, tuple[int, int]] = {}

    def counted(self, row: SignedRow, *, currency: str) -> SignedRow | str:
        """Return the row as signed by rule and count it, or why no rule allows it."""
        used = self._account.bounds(self._kind, currency=currency)
        if used is None:
            return f"no {self._kind.value} {currency} is signed without people".replace("  ", " ")
        name, bounds = used
        if name not in self._used:
            self._used[name] = self._signed.used(
                self._name, kinds=self._kinds, counts_as=name, at=self._at
            )
        count, units = self._used[name]
        after = (count + 1, units + row.minor_units)
        if why := _beyond(bounds, row.minor_units, after=after, currency=currency):
            return why
        self._used[name] = after
        return replace(row, counts_as=name, by_rule=True)


def _beyond(bounds: RuleBounds, minor_units: int, *, after: tuple[int, int], currency: str) -> str:
    count, units = after
    if count > bounds.count:
        return f"the {bounds.count} of 24 hours are used up"
    for name, limit, amount in (("one", bounds.item, minor_units), ("24 hours", bounds.day, units)):
        if limit is not None and Decimal(amount).scaleb(-exponent(currency)) > limit:
            amount_text = Money.of_minor_units(amount, currency=currency)
            return f"the own limit of {name} is {limit} {currency}, not {amount_text}"
    return ""


Terms = Mapping[str, str | int]
Wire = Mapping[str, str]

KINDS: Mapping[str, InstructionKind] = {
    Operation.CAPTURE: InstructionKind.CAPTURE,
    Operation.REFUND: InstructionKind.REFUND,
    Operation.CANCEL: InstructionKind.CANCEL,
    Operation.REVIEW: InstructionKind.REVIEW,
    Operation.CANCEL_SUBSCRIPTION: InstructionKind.CANCEL_SUBSCRIPTION,
    Operation.PAYOUT: InstructionKind.PAYOUT,
}
"""Template -> kind of instruction; no other template carries an instruction."""

MOVED_IN: Mapping[InstructionKind, str] = {
    InstructionKind.CAPTURE: "amount",
    InstructionKind.REFUND: "refund_amount",
    InstructionKind.PAYOUT: "payment_amount",
}
"""Field of the row on the wire with the amount that moves."""
WHOLE_IN = frozenset({InstructionKind.REFUND, InstructionKind.CANCEL, InstructionKind.REVIEW})
"""Kinds whose `amount` on the wire is that of the whole payment."""
AMOUNT_NEEDED = frozenset({InstructionKind.CANCEL, InstructionKind.REVIEW})
"""Kinds that count by that amount, so that it must be valid."""
_K = InstructionKind
SAME: Mapping[InstructionKind, Mapping[str, str]] = {
    _K.CAPTURE: {"order_no": "order_no", "currency": "currency"},
    _K.REFUND: {"order_no": "order_no", "currency": "currency"},
    _K.CANCEL: {"order_no": "order_no", "currency": "currency"},
    _K.REVIEW: {"order_no": "order_no", "currency": "currency"},
    _K.CANCEL_SUBSCRIPTION: {"recurring_id": "recurring_id", "contract_name": "contract_name"},
    _K.PAYOUT: {"request_id": "gateway_request_id", "payment_currency": "currency"},
}
"""Field on the wire -> field of the instruction; their values must be equal."""
IF_NAMED: Mapping[str, str] = {"transaction_id": "transaction_id", "review_flag": "review_flag"}
"""As SAME, but only if the instruction has a value: its payment may be determined later."""


AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,4})?", re.ASCII)
"""An amount on the wire, without a sign, since a negative one would give back used-up limit."""


def row_differs(wire: Wire, *, kind: InstructionKind, account: str, terms: Terms) -> str:
    """Return how a row differs from its instruction, as text; "" if they agree."""
    if terms.get("kind") != kind.value:
        return f"its instruction is a {terms.get('kind', 'nothing')}, not a {kind.value}"
    if f"{terms.get('merchant_id')}/{terms.get('account_id')}" != account:
        return "its instruction is another account's"
    same = dict(SAME[kind]) | {w: t for w, t in IF_NAMED.items() if w in wire and terms.get(t)}
    for name, term in same.items():
        if wire.get(name, "") != str(terms.get(term, "")):
            return f"its {name} is not the instruction's"
    return _amount_differs(wire, kind=kind, terms=terms)


def _amount_differs(wire: Wire, *, kind: InstructionKind, terms: Terms) -> str:
    moved, whole = terms.get("amount", 0), terms.get("payment_amount", 0)
    currency = str(terms.get("currency", ""))
    field = MOVED_IN.get(kind)
    if field and _minor(wire, field, currency=currency) != moved:
        return f"its {field} is not the instruction's"
    on_wire = _minor(wire, "amount", currency=currency)
    if kind in WHOLE_IN and whole and on_wire != whole:
        return "its amount is not that of the instruction's payment"
    if on_wire is None and (kind in AMOUNT_NEEDED or wire.get("amount")):
        return "its amount is none"
    return ""


def grammar_problem(wire: Wire, *, interface: GatewayInterface) -> str:
    """Return why a row's ids must not be signed (removing a space makes another id), or ""."""
    for name in ("transaction_id", "order_no", "currency"):
        if name in wire and (reason := text_problem(name, text=wire[name], interface=interface)):
            return f"its {name} {reason}"
    return ""


def moved_units(wire: Wire, *, kind: InstructionKind, terms: Terms) -> int:
    """Return the minor units a row moves; of a cancel or review those of the whole payment."""
    field = MOVED_IN.get(kind, "amount")
    return _minor(wire, field, currency=str(terms.get("currency", ""))) or 0


def _minor(wire: Wire, field: str, *, currency: str) -> int | None:
    if not AMOUNT.fullmatch(wire.get(field, "")):
        return None
    try:
        return Money(Decimal(wire.get(field, "")), currency).minor_units
    except (InvalidOperation, AmountError, ValueError):
        return None


NEVER_SIGNED = frozenset({"payment_reply"})
"""Templates that only the gateway signs; their signatures can be checked."""
BARE = frozenset({"merchant_id", "account_id"})
"""What the signature of a query may cover. Further texts of the caller could be made to read like a
refund, since fields are joined without delimiters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request."""

    signature: str = field(default="", repr=False)
    why_not: str = ""
    refused: Mapping[int, str] = field(default_factory=dict)
    """0-based position of a row -> why it is not signed."""


class Signing:
    """Signs or refuses requests; rows of money are recorded before their signature is returned."""

    def __init__(
        self,
        settings: SignerSettings,
        *,
        signature_log: SignatureLog,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._signed = signature_log
        self._clock = clock

    def sign(self, signing: SigningRequest) -> Answer:
        """Return the signature if the request may be signed, else why not."""
        if why := self._unknown(signing):
            return Answer(why_not=why)
        if signing.template in KINDS:
            refused = self._refused_rows(signing)
            if refused:
                return Answer(why_not=_summed(refused), refused=refused)
        elif why := self._refused_message(signing):
            return Answer(why_not=why)
        return Answer(signature=self._signature(signing))

    def matches(self, signing: SigningRequest) -> bool:
        """Return whether the signature that came with a message is correct."""
        if self._unknown(signing):
            return False
        return same_signature(signing.given, expected=self._signature(signing))

    def _unknown(self, signing: SigningRequest) -> str:
        if signing.account not in self._settings.keys:
            return f"no account {signing.account} is signed for here"
        if signing.template not in self._settings.interface.signature.templates:
            return f"there is no operation {signing.template!r}"
        return ""

    def _signature(self, signing: SigningRequest) -> str:
        message = SignedMessage(
            template=signing.template,
            merchant_id=signing.merchant_id,
            account_id=signing.account_id,
            fields=signing.fields,
            rows=signing.rows,
        )
        key = self._settings.keys[signing.account]
        return signed_with(key, message, interface=self._settings.interface)

    def _refused_message(self, signing: SigningRequest) -> str:
        """Return why a message that carries no instruction is not signed; "" if it may be."""
        if signing.template in NEVER_SIGNED:
            return f"{signing.template} is what the gateway signs"
        covered = set(self._settings.interface.signature.templates[signing.template])
        if covered <= BARE or self._settings.file.signs_free_fields:
            return ""
        return (
            f"the signature of {signing.template} covers texts of the caller "
            f"({', '.join(sorted(covered - BARE))}), which could be made those of a refund: "
            "signs_free_fields in the signer's file allows it"
        )

    def _refused_rows(self, signing: SigningRequest) -> dict[int, str]:
        """Return why rows are not signed; {} if all may be, and they are recorded then."""
        kind = KINDS[signing.template]
        wires = self._signed_rows(signing)
        if not wires:
            return {0: "its rows and fields are not in the form of this operation"}
        if len(signing.grounds.rows) != len(wires):
            return dict.fromkeys(range(len(wires)), "nothing is said of which instruction it is")
        wrong = self._wrong_rows(signing, kind=kind, wires=wires)
        return wrong or self._unagreed_rows(signing, kind=kind, wires=wires)

    def _unagreed_rows(
        self, signing: SigningRequest, *, kind: InstructionKind, wires: Sequence[Mapping[str, str]]
    ) -> dict[int, str]:
        """Return why neither people nor a limit allow rows; {} once all of them are recorded."""
        endorsements, account = self._endorsements(signing), signing.account
        refused: dict[int, str] = {}
        with self._signed.turn():
            at = self._clock()
            accepted: list[SignedRow] = []
            limits = Limits(self._settings.file, self._signed, account=account, kind=kind, at=at)
            for position, (wire, row) in enumerate(zip(wires, signing.grounds.rows, strict=True)):
                signed = _row_of(wire, row=row, kind=kind, account=account)
                if self._signed.knows(signed):
                    continue
                if why := self._not_endorsed(row, endorsements=endorsements, at=at):
                    by_rule = limits.counted(signed, currency=str(row.terms.get("currency", "")))
                    if isinstance(by_rule, str):
                        refused[position] = f"{why}, and {by_rule}"
                        continue
                    signed = by_rule
                if self._signed.names_another(signed):
                    refused[position] = "it was signed for another payment before"
                    continue
                accepted.append(signed)
            if not refused:
                self._signed.keep(accepted, at=at)
        return refused

    def _signed_rows(self, signing: SigningRequest) -> tuple[Mapping[str, str], ...]:
        """Return the rows that the signature covers: a batch's rows or its fields; () if wrong."""
        described = self._settings.interface.batch(signing.template)
        if described.rows_field:
            return () if signing.fields else signing.rows
        return () if signing.rows else (signing.fields,)

    def _wrong_rows(
        self, signing: SigningRequest, *, kind: InstructionKind, wires: Sequence[Mapping[str, str]]
    ) -> dict[int, str]:
        ids = Counter(row.instruction_id for row in signing.grounds.rows)
        payments = Counter(wire.get("transaction_id", "") for wire in wires)
        interface = self._settings.interface
        refused = {}
        for position, (wire, row) in enumerate(zip(wires, signing.grounds.rows, strict=True)):
            why = grammar_problem(wire, interface=interface) or row_differs(
                wire, kind=kind, account=signing.account, terms=row.terms
            )
            payment = wire.get("transaction_id", "")
            if ids[row.instruction_id] > 1 or (payment and payments[payment] > 1):
                why = why or "it stands in this list twice"
            if why:
                refused[position] = why
        return refused

    def _endorsements(self, signing: SigningRequest) -> list[Endorsement]:
        """Return the endorsements with a valid signature; others are ignored."""
        key = self._settings.desk_key
        if key is None:
            return []
        held = []
        for endorsement in signing.grounds.endorsements:
            try:
                held.append(opened(endorsement.signed, key=key))
            except EndorsementError:
                continue
        return held

    def _not_endorsed(
        self, row: SigningRow, *, endorsements: Sequence[Endorsement], at: datetime
    ) -> str:
        if self._settings.desk_key is None:
            return "no desk is known here"
        seen = row.seen or row.terms
        if not is_filled_in(seen, now=row.terms):
            return "it is not what people saw"
        return row_problem(
            row.instruction_id,
            terms=seen,
            endorsements=endorsements,
            must_be_proven=self._settings.file.must_be_proven,
            at=at,
        )


def _row_of(
    wire: Mapping[str, str], *, row: SigningRow, kind: InstructionKind, account: str
) -> SignedRow:
    canonical = json.dumps(dict(wire), sort_keys=True, separators=(",", ":"))
    return SignedRow(
        account=account,
        kind=kind.value,
        instruction_id=row.instruction_id,
        row_sha256=hashlib.sha256(canonical.encode()).hexdigest(),
        counts_as=str(row.terms.get("currency", "")) or ANY,
        minor_units=moved_units(wire, kind=kind, terms=row.terms),
        by_rule=False,
        transaction_id=wire.get("transaction_id", ""),
    )


def _summed(refused: Mapping[int, str]) -> str:
    first = min(refused)
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return f"row {first + 1}: {refused[first]}{more}"
