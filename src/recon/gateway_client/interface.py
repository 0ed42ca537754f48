"""The gateway's interface as configuration: three TOML tables, validated into one value.

`profiles`, `signature` and `status_map` each have the layers base < extended < user; the layers of
the chosen profile are merged here. All other modules of the client use it. Amounts are written with
a configured number of decimals per currency, and never rounded.
"""

import asyncio
import hashlib
import hmac
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from recon.gateway_client.errors import InterfaceError
from recon.model.errors import AmountError
from recon.model.money import exponent, read_amount
from recon.privacy.foreign_text import without_values

ROWS_MAX = 1_000


def _pattern(text: str) -> str:
    try:
        re.compile(text, re.ASCII)
    except re.error as error:
        msg = f"not a regular expression: {error}"
        raise ValueError(msg) from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
WirePath = Annotated[str, Field(pattern=r"^/v1/[A-Za-z0-9]+$")]
Body = Literal["json", "form", "xml"]
ContentType = Annotated[str, Field(pattern=r"^[a-z]+/[a-z0-9.+-]+$")]


class InterfaceTable(BaseModel):
    """Base class of tables that refuse unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldPatterns(InterfaceTable):
    """Patterns that the whole text of a field we send must match."""

    merchant_id: Pattern
    account_id: Pattern
    transaction_id: Pattern
    order_no: Pattern
    currency: Pattern
    amount: Pattern
    refund_amount: Pattern
    refund_reason: Pattern
    refund_reference: Pattern
    review_flag: Pattern
    recurring_id: Pattern
    contract_name: Pattern


class CallFormat(InterfaceTable):
    """Wire format of an operation."""

    path: WirePath
    body: Body
    content_type: ContentType


class BatchOperation(CallFormat):
    """Wire format of an operation that moves or releases money, with many rows or one."""

    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str = ""
    """The JSON list of the rows; "" if the message itself is its only row."""
    row_fields: tuple[str, ...]
    echo_fields: tuple[str, ...]
    """Fields of a reply's row that must equal what was sent."""
    echo_fields_if_given: tuple[str, ...] = ()
    """The same for fields (dots for nested objects) that may also be empty."""
    status_field: str
    message_field: str
    code_field: str = ""
    """The field of the code; "" if the message begins with it."""
    key_field: str = "transaction_id"
    """The field that identifies a row in the reply."""
    grammar: dict[str, Pattern] = Field(default_factory=dict)
    """Whole-text patterns of single fields, by the last part of their name."""

    @model_validator(mode="after")
    def _has_a_place_for_its_rows(self) -> Self:
        if self.rows_field and self.body != "json":
            msg = "a list of rows is written in JSON only"
            raise ValueError(msg)
        if not self.rows_field and self.rows_max > 1:
            msg = "more than one row needs a rows_field"
            raise ValueError(msg)
        return self


FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,49}$")]
PaymentName = Literal["authorise_card", "authorise_apm", "checkout"]


class PaymentFormats(InterfaceTable):
    """Operations that start a payment, and the fields whose names differ by brand."""

    website_field: str = Field(pattern=r"^[A-Za-z_]{1,50}$")
    antifraud_provider: str = Field(pattern=r"^[A-Za-z0-9_]{0,50}$")
    more_fields: dict[PaymentName, frozenset[FieldName]]
    """Additional fields that a brand accepts, per operation."""
    sent_empty: dict[PaymentName, tuple[FieldName, ...]]
    """Fields that are sent empty when unused, per operation; other unused fields are left out."""
    page_hosts: frozenset[str]
    """Hosts (with port unless it is the default) that the hosted page may be on, besides the
    gateway's own."""
    authorise_card: CallFormat
    authorise_apm: CallFormat
    checkout: CallFormat


KeyKind = Literal["order_no", "transaction_id", "refund_reference"]
"""Type of the keys of a query: the field of a row that holds one."""


class ReadOperation(CallFormat):
    """Wire format of a query about many keys."""

    body: Literal["form", "json"]
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    keys: dict[KeyKind, FieldName]
    """Type of key -> the request field that takes the keys, joined by commas."""


class QueryOperations(InterfaceTable):
    """The queries that the gateway offers."""

    retrievalTrans: ReadOperation  # noqa: N815 - the operation's own name in its path
    retrievalRefund: ReadOperation | None = None  # noqa: N815 - the same


DECIMALS_MAX = 4
"""No currency of ISO 4217 has more."""

MAGNITUDE_MAX = 30
"""Digits before or after the decimal point beyond which a number is not even formatted."""

Decimals = Annotated[int, Field(ge=0, le=DECIMALS_MAX)]
CurrencyCode = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class WireAmounts(InterfaceTable):
    """Decimals of amounts per currency in one gateway's wire format."""

    decimals: Decimals
    own_decimals_if_more: bool
    """A currency with more decimals is written with all of its own."""
    of_currency: dict[CurrencyCode, Decimals] = Field(default_factory=dict)
    """Overrides for single currencies, also ones that ISO 4217 does not have."""
    as_written: frozenset[str] = frozenset()
    """Operations whose replies may have fewer decimals than the currency, such as 12.5."""

    def decimals_of(self, currency: str) -> int | None:
        """Return the decimals of a currency on the wire; None for an unknown currency."""
        if currency in self.of_currency:
            return self.of_currency[currency]
        own = _iso_decimals(currency)
        if own is None:
            return None
        return max(self.decimals, own) if self.own_decimals_if_more else self.decimals

    def knows(self, currency: str) -> bool:
        """Return whether amounts of this currency can be written and read."""
        return self.decimals_of(currency) is not None

    def currency_problem(self, currency: str) -> str:
        """Return why nothing may be sent in this currency; "" if it may."""
        if not self.knows(currency):
            return "is not a currency of ISO 4217, nor under amounts.of_currency in profiles.toml"
        return ""

    def amount_of(self, text: str | None, *, currency: str, operation: str) -> Decimal | None:
        """Parse an amount in a reply to an operation; None if it is not one."""
        return self.reader(currency, operation=operation)(text or "")

    def reader(self, currency: str, *, operation: str) -> Callable[[str], Decimal | None]:
        """Return a parser like `amount_of`, for many texts.

        For operations in `as_written` it accepts fewer decimals than the currency has.
        """
        read = self._grammar(currency, is_short=operation in self.as_written)

        def amount(text: str) -> Decimal | None:
            try:
                return read(text)
            except AmountError:
                return None

        return amount

    def problem(self, value: object, *, currency: str, may_be_zero: bool = False) -> str:
        """Return why a value is not an amount that may be sent; "" if it is one.

        It should be a Decimal in major units with the decimals of its currency or of the wire. An
        unknown currency is a problem of the currency field. A part of a total may be zero.
        """
        problem = number_problem(value, may_be_zero=may_be_zero)
        decimal_count = self.decimals_of(currency)
        if problem or decimal_count is None or not isinstance(value, Decimal):
            return problem
        try:
            self._grammar(currency, is_short=False)(f"{value:f}")
        except AmountError as error:
            return str(error)
        fits = value == round(value, decimal_count)
        return "" if fits else f"{value} {currency} cannot be written with {decimal_count} decimals"

    def written(self, value: Decimal, *, currency: str) -> str:
        """Format a valid amount for the wire: 1200 and 1200.00 yen look the same."""
        decimal_count = self.decimals_of(currency)
        return f"{value:f}" if decimal_count is None else f"{value:.{decimal_count}f}"

    def _grammar(self, currency: str, *, is_short: bool) -> Callable[[str], Decimal]:
        """Return the parser of amounts; it raises AmountError for other texts and currencies.

        `is_short`: any number of decimals up to the currency's is accepted, not only the wire's.
        """
        decimal_count, own = self.decimals_of(currency), _iso_decimals(currency)

        def read(text: str) -> Decimal:
            if decimal_count is None:
                msg = f"{currency!r} {self.currency_problem(currency)}"
                raise AmountError(msg)
            decimals = decimal_count if own is None else own
            enough = len(text.partition(".")[2]) if is_short else decimal_count
            read_amount(text, currency=currency, decimals=decimals, wire_decimals=enough)
            return Decimal(text)

        return read


def number_problem(value: object, *, may_be_zero: bool = False) -> str:
    """Return why a value is not an amount in any currency; "" if it is one."""
    if not isinstance(value, Decimal):
        return "is not a Decimal"
    if not value.is_finite() or abs(value.adjusted()) > MAGNITUDE_MAX:
        return "is not an amount"
    if may_be_zero and value == 0:
        return ""
    return "" if value > 0 else "is not more than zero"


def _iso_decimals(currency: str) -> int | None:
    try:
        return exponent(currency)
    except AmountError:
        return None


CHARACTERS_MAX = 1_000_000
Table = TypeVar("Table", bound=BaseModel)
USER = "user"
LAYERS = ("base", "extended", USER)
"""Lowest first; `extended` applies only to the profile of that name."""

UNREAD = frozenset({"checkout", "payment_reply"})
"""Templates without a rule for replies: a hosted page has no signature."""

FILES = ("profiles", "signature", "status_map")
UserLayers = Mapping[str, Mapping[str, Any]]

ReplyPolicy = Literal["off", "warn", "enforce"]
ReplyRule = Literal["echo", "echo-or-absent", "signed", "signed-or-absent"]
RowWord = Literal["done", "accepted", "failed", "pending"]
QueryRefusal = Literal[
    "accepted", "parameters", "too_many", "merchant", "signature", "address", "system"
]


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError) as error:
        msg = f"{text!r} is not a time zone such as UTC or Europe/Lisbon"
        raise ValueError(msg) from error
    return text


class Profile(InterfaceTable):
    """Paths, wire formats, limits and field names."""

    query_characters_max: int = Field(ge=0, le=CHARACTERS_MAX)
    send_refund_reference: bool
    text_characters_max: int = Field(ge=1, le=CHARACTERS_MAX)
    """For text fields without a length of their own."""
    grammar: FieldPatterns
    amounts: WireAmounts
    lengths: dict[str, Annotated[int, Field(ge=1, le=CHARACTERS_MAX)]]
    batch: dict[str, BatchOperation]
    payment: PaymentFormats
    query: QueryOperations


class SignatureRules(InterfaceTable):
    """How requests are signed, and what the signature of a reply must be."""

    algorithm: Literal["sha256", "hmac-sha256"]
    whitespace: Literal["remove-spaces", "strip", "none"]
    hex_case: Literal["lower", "upper"]
    templates: dict[str, tuple[str, ...]]
    replies: dict[str, ReplyRule]

    def may_lack(self, operation: str) -> bool:
        """Return whether replies of this operation are trusted without a signature."""
        return self.replies[operation].endswith("-or-absent")

    def is_echo(self, operation: str) -> bool:
        """Return whether replies of this operation repeat the signature of the request."""
        return self.replies[operation].startswith("echo")


Refused = Annotated[int, Field(ge=400, le=499)]


class Refusals(InterfaceTable):
    """When a whole money request counts as refused before processing."""

    signature_codes: frozenset[str]
    before_processing_codes: frozenset[str]
    before_processing_http: frozenset[Refused]
    apm_http: frozenset[Refused]
    """The same for payments by another method, according to the API document."""
    refusal_is_final: bool
    """The gateway has assured the merchant that a 429 or 503 with Retry-After processed nothing."""


class DescribedQuery(InterfaceTable):
    """How replies to the order query are read."""

    row_missing_when_asked_alone: Literal["failed", "not_found"]
    refund_missing_when_asked_alone: Literal["failed", "not_found"]
    timezone: Annotated[str, AfterValidator(_zone)]


class StatusMap(InterfaceTable):
    """The meaning of the gateway's codes."""

    return_status: dict[str, Literal["accepted", "refused"]]
    row_status: dict[str, dict[str, RowWord]]
    refusals: Refusals
    order_status: dict[str, Literal["done", "failed", "pending"]]
    query_return_status: dict[str, QueryRefusal]
    query_result: dict[str, Literal["record", "not_found", "failed"]]
    query: DescribedQuery


class GatewayInterface(InterfaceTable):
    """Everything the client knows about the gateway's interface, in one frozen value."""

    profile_name: str
    profile: Profile
    signature: SignatureRules
    status_map: StatusMap

    @classmethod
    def of(
        cls,
        *,
        profiles: Mapping[str, Any],
        signature: Mapping[str, Any],
        status_map: Mapping[str, Any],
        profile: str = "base",
    ) -> Self:
        """Build the interface of one profile from the three parsed TOML files.

        Raises:
            InterfaceError: naming the file and key that is unknown, missing or wrong.
        """
        interface = cls(
            profile_name=profile,
            profile=_read(Profile, tables=profiles, file="profiles", profile=profile),
            signature=_read(SignatureRules, tables=signature, file="signature", profile=profile),
            status_map=_read(StatusMap, tables=status_map, file="status_map", profile=profile),
        )
        _refuse_gaps(interface)
        return interface

    @classmethod
    def bundled(cls, profile: str = "base", *, user: UserLayers | None = None) -> Self:
        """Return the interface that ships with the package.

        Args:
            profile: `base`, what the API document shows, or `extended`.
            user: A gateway's own keys by file (profiles, signature, status_map); they win.

        Raises:
            InterfaceError: naming the file and key that is unknown, missing or wrong.

        >>> GatewayInterface.bundled("base").profile.batch["capture"].rows_max
        50
        >>> yen = {"profiles": {"amounts": {"of_currency": {"JPY": 0}}}}
        >>> GatewayInterface.bundled("base", user=yen).profile.amounts.decimals_of("JPY")
        0
        """
        unknown = sorted(set(user or {}) - set(FILES))
        if unknown:
            msg = f"{', '.join(unknown)} is no file of the interface (known: {', '.join(FILES)})"
            raise InterfaceError(msg)
        tables = {name: {**_bundled(name), USER: (user or {}).get(name, {})} for name in FILES}
        return cls.of(**tables, profile=profile)

    def batch(self, operation: str) -> BatchOperation:
        """Return the wire format of an operation that is sent in batches, be it of one row.

        Raises:
            InterfaceError: the profile does not describe the operation.
        """
        described = self.profile.batch.get(operation)
        if described is None:
            known = ", ".join(sorted(self.profile.batch))
            msg = f"profiles.toml describes no batch operation {operation!r} (described: {known})"
            raise InterfaceError(msg)
        return described


def _bundled(name: str) -> dict[str, Any]:
    """Read a configuration file from the wheel, or from the checkout."""
    here = Path(__file__)
    shipped = here.parents[1] / "_config"
    folder = shipped if shipped.is_dir() else here.parents[3] / "config"
    return tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))


def _read(table: type[Table], *, tables: Mapping[str, Any], file: str, profile: str) -> Table:
    unknown = sorted(set(tables) - set(LAYERS))
    if unknown:
        msg = f"{file}.toml has unknown layers: {', '.join(unknown)} (known: {', '.join(LAYERS)})"
        raise InterfaceError(msg)
    if profile not in LAYERS[:2]:
        msg = f"{profile!r} is not a profile (known: {', '.join(LAYERS[:2])})"
        raise InterfaceError(msg)
    merged: dict[str, Any] = {}
    for layer in LAYERS:
        if layer != "extended" or profile == "extended":
            merged = _overlay(merged, over=tables.get(layer, {}))
    try:
        return table.model_validate(merged)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False)
        )
        msg = f"{file}.toml, profile {profile}: {problems}"
        raise InterfaceError(msg) from error


def _overlay(tables: Mapping[str, Any], *, over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _overlay(below, over=value)
        else:
            merged[key] = value
    return merged


def _refuse_gaps(interface: GatewayInterface) -> None:
    """Refuse gaps: without template, reply rule or statuses an outcome would be guessed."""
    moving = set(interface.profile.batch)
    queries = {name for name, described in interface.profile.query if described is not None}
    signed = moving | queries | {"authorise_card", "authorise_apm"}
    for file, table, needed in (
        ("signature.toml, templates", interface.signature.templates, signed | UNREAD),
        ("signature.toml, replies", interface.signature.replies, signed),
        ("status_map.toml, row_status", interface.status_map.row_status, moving),
    ):
        missing = sorted(needed - set(table))
        if missing:
            msg = f"{file}: nothing is said of {', '.join(missing)}"
            raise InterfaceError(msg)


@dataclass(frozen=True, slots=True)
class SignedMessage:
    """A message to be signed or verified; only the named fields are signed."""

    template: str
    """Name of a template in signature.toml: the operation, or payment_reply."""
    merchant_id: str
    account_id: str
    fields: Mapping[str, str] = field(repr=False)
    rows: tuple[Mapping[str, str], ...] = field(default=(), repr=False)


class Signer(Protocol):
    """A holder of the key that signs for us; `instructions.account` has an implementation."""

    def sign(self, signed: SignedMessage) -> str:
        """Return the signature of a message, in hexadecimal.

        Raises:
            UnsignedError: refused, or not available; nothing was signed.
        """
        ...

    def matches(self, signed: SignedMessage, *, given: str) -> bool:
        """Return whether `given` is the signature of a message.

        Raises:
            UnsignedError: the holder of the key is not available.
        """
        ...


Made = TypeVar("Made")

SPACE = " "
EACH_ROW = "[]"
"""Suffix of a field name in a template: the field of every row, in order."""


KEY_CHARACTERS_MIN = 8
"""Minimum length of a signing key; the sandbox's has it."""


@dataclass(frozen=True)
class OurAccount:
    """Our account at the gateway: ids, interface, and the signing key or its holder."""

    merchant_id: str
    account_id: str
    sign_key: SecretStr | Signer
    """The key, or a signer that holds it; a key is never in a repr."""
    interface: GatewayInterface = field(default_factory=GatewayInterface.bundled, repr=False)
    policy: ReplyPolicy = "enforce"
    """What the signature of a reply must be."""

    @property
    def private(self) -> frozenset[str]:
        """The key, to be masked in replies; one that is too short could be an ordinary word.

        Empty if a signer holds the key.
        """
        if not isinstance(self.sign_key, SecretStr):
            return frozenset()
        key = self.sign_key.get_secret_value()
        return frozenset({key} if len(key) >= KEY_CHARACTERS_MIN else ())

    def message(self, fields: Mapping[str, Any], *, signature: str) -> dict[str, Any]:
        """Build a request: account ids, its own fields, and the signature."""
        ours = {"merchant_id": self.merchant_id, "account_id": self.account_id}
        return {**ours, **fields, "encryption_data": signature}

    def without_key(self, text: bytes) -> bytes:
        """Mask the key in a reply that quotes it."""
        return without_values(text, values=self.private)

    def sign(
        self,
        template: str,
        *,
        fields: Mapping[str, str],
        rows: Sequence[Mapping[str, str]] = (),
    ) -> str:
        """Return the hexadecimal signature of a message of this account.

        Raises:
            UnsignedError: the holder of the key refused, or is not available.
        """
        signed = SignedMessage(template, self.merchant_id, self.account_id, fields, tuple(rows))
        if isinstance(self.sign_key, SecretStr):
            return signed_with(self.sign_key, signed, interface=self.interface)
        return self.sign_key.sign(signed)

    def is_signed(
        self,
        given: str,
        template: str,
        *,
        fields: Mapping[str, str],
        rows: Sequence[Mapping[str, str]] = (),
    ) -> bool:
        """Return whether a received signature is that of this message; accepts any text.

        Only the fields it covers are used, or passed to the holder of the key.

        Raises:
            UnsignedError: the holder of the key is not available.
        """
        covered = self.interface.signature.templates[template]
        covered_fields = {name: fields[name] for name in covered if name in fields}
        signed = SignedMessage(
            template, self.merchant_id, self.account_id, covered_fields, tuple(rows)
        )
        if isinstance(self.sign_key, SecretStr):
            expected = signed_with(self.sign_key, signed, interface=self.interface)
            return same_signature(given, expected=expected)
        return self.sign_key.matches(signed, given=given)

    async def in_thread(self, make: Callable[[], Made]) -> Made:
        """Call `make`, in a thread if it may wait for another process to sign."""
        if isinstance(self.sign_key, SecretStr):
            return make()
        return await asyncio.to_thread(make)


RETRY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of queries."""

    calls_per_second: float = 5.0
    in_flight: int = 4
    retry_seconds: float = RETRY_SECONDS
    """How long a group of keys, or a silent gateway, is retried; 0: every group once."""


class SignatureState(StrEnum):
    """Result of checking the signature of a reply."""

    VALID = "valid"
    ABSENT = "absent"
    WRONG = "wrong"
    UNCHECKED = "unchecked"


def signed_with(key: SecretStr, signed: SignedMessage, *, interface: GatewayInterface) -> str:
    """Return the signature of a message with a key at hand."""
    rules = interface.signature
    ours = {"merchant_id": signed.merchant_id, "account_id": signed.account_id}
    known = {**signed.fields, **ours}
    values: list[str] = []
    for name in rules.templates[signed.template]:
        if name.endswith(EACH_ROW):
            values.extend(row.get(name.removesuffix(EACH_ROW), "") for row in signed.rows)
        else:
            values.append(known.get(name, ""))
    # Only U+0020 counts as a space: all other white space is signed.
    if rules.whitespace == "remove-spaces":
        values = [value.replace(SPACE, "") for value in values]
    elif rules.whitespace == "strip":
        values = [value.strip(SPACE) for value in values]
    plain = "".join(values)
    # A reply may hold lone surrogates; they must not match, nor raise an error.
    message = plain.encode(errors="surrogatepass")
    secret = key.get_secret_value().encode()
    if rules.algorithm == "hmac-sha256":
        signature = hmac.new(secret, message, hashlib.sha256).hexdigest()
    else:
        signature = hashlib.sha256(message + secret).hexdigest()
    return signature.upper() if rules.hex_case == "upper" else signature


def same_signature(given: str, *, expected: str) -> bool:
    """Compare two hexadecimal signatures in constant time, ignoring case."""
    return hmac.compare_digest(
        given.lower().encode(errors="replace"), expected.lower().encode(errors="replace")
    )
