"""The gateway's interface as data: three TOML tables, read into one checked value.

`profiles`, `signature` and `status_map` each hold the layers base < extended < user; the layers of
the chosen profile are laid on top of each other here. Used by every other module of the client.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from recon.gateway_client.errors import InterfaceError

ROWS_MAX = 1_000
CHARACTERS_MAX = 1_000_000
Table = TypeVar("Table", bound=BaseModel)
LAYERS = ("base", "extended", "user")
"""Lowest first; `extended` counts only in the profile of that name."""

ReplyPolicy = Literal["off", "warn", "enforce"]
RowWord = Literal["done", "accepted", "failed", "pending"]
QueryRefusal = Literal[
    "accepted", "parameters", "too_many", "merchant", "signature", "address", "system"
]


def _pattern(text: str) -> str:
    try:
        re.compile(text, re.ASCII)
    except re.error as error:
        msg = f"not a regular expression: {error}"
        raise ValueError(msg) from error
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError) as error:
        msg = f"{text!r} is not a time zone such as UTC or Europe/Lisbon"
        raise ValueError(msg) from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
WirePath = Annotated[str, Field(pattern=r"^/v1/[A-Za-z0-9]+$")]
Body = Literal["json", "form", "xml"]
ContentType = Annotated[str, Field(pattern=r"^[a-z]+/[a-z0-9.+-]+$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Grammar(_Table):
    """Whole-text patterns of the fields we send."""

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


class BatchOperation(_Table):
    """How one batch operation looks on the wire."""

    path: WirePath
    body: Literal["json"]
    content_type: ContentType
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    row_fields: tuple[str, ...]
    echo_fields: tuple[str, ...]
    """Fields of a reply's row that must equal what was sent."""
    status_field: str
    message_field: str
    key_field: Literal["transaction_id"] = "transaction_id"
    """The field by which a reply's row is found again."""


class SingleOperation(_Table):
    """How an operation looks on the wire whose batches have exactly one row."""

    path: WirePath
    body: Body
    content_type: ContentType
    rows_max: Literal[1] = 1
    row_fields: tuple[str, ...]
    echo_fields: tuple[str, ...]
    echo_fields_if_given: tuple[str, ...] = ()
    """Fields of the reply (dots lead into objects) that must equal what was sent unless empty."""
    status_field: str
    message_field: str
    code_field: str = ""
    """The field of the code; "" when the message begins with it."""
    key_field: str
    grammar: dict[str, Pattern] = Field(default_factory=dict)
    """Whole-text patterns of single fields by their last name."""


class PaymentFormat(_Table):
    """How an operation that starts a payment looks on the wire."""

    path: WirePath
    body: Body
    content_type: ContentType


class PaymentFormats(_Table):
    """The operations that start a payment, and the names of fields that differ by brand."""

    website_field: str = Field(pattern=r"^[A-Za-z_]{1,50}$")
    antifraud_provider: str = Field(pattern=r"^[A-Za-z0-9_]{0,50}$")
    authorise_card: PaymentFormat
    authorise_apm: PaymentFormat
    checkout: PaymentFormat


OperationFormat = BatchOperation | SingleOperation


class QueryOperation(_Table):
    """How the order query looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    order_nos_field: str
    transaction_ids_field: str


class RefundQueryOperation(_Table):
    """How the search for refunds looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    order_nos_field: str
    references_field: str


class MethodsOperation(_Table):
    """How the question for the best payment methods looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_field: str
    name_field: str
    """Of a method that comes as an object."""


class QueryOperations(_Table):
    """The queries the gateway offers."""

    retrievalTrans: QueryOperation  # noqa: N815 - the operation's own name in its path
    retrievalRefund: RefundQueryOperation | None = None  # noqa: N815 - the same
    optimise: MethodsOperation | None = None


class Profile(_Table):
    """Paths, wire formats, limits and field names."""

    query_characters_max: int = Field(ge=0, le=CHARACTERS_MAX)
    send_refund_reference: bool
    grammar: Grammar
    lengths: dict[str, Annotated[int, Field(ge=1, le=CHARACTERS_MAX)]]
    batch: dict[str, BatchOperation]
    single: dict[str, SingleOperation]
    payment: PaymentFormats
    query: QueryOperations


class SignatureRules(_Table):
    """How requests are signed and what a reply's signature must be."""

    algorithm: Literal["sha256", "hmac-sha256"]
    whitespace: Literal["remove-spaces", "strip", "none"]
    hex_case: Literal["lower", "upper"]
    templates: dict[str, tuple[str, ...]]
    replies: dict[str, Literal["echo", "echo-or-absent"]]


class Refusals(_Table):
    """When a whole money request counts as refused before processing."""

    signature_codes: frozenset[str]
    before_processing_codes: frozenset[str]
    before_processing_http: frozenset[Annotated[int, Field(ge=400, le=499)]]
    retry_after_is_final: bool


class QueryReading(_Table):
    """How answers of the order query are read."""

    row_missing_when_asked_alone: Literal["failed", "not_found"]
    refund_missing_when_asked_alone: Literal["failed", "not_found"]
    timezone: Annotated[str, AfterValidator(_zone)]


class StatusMap(_Table):
    """What the gateway's codes mean."""

    return_status: dict[str, Literal["accepted", "refused"]]
    row_status: dict[str, dict[str, RowWord]]
    refusals: Refusals
    order_status: dict[str, Literal["done", "failed", "pending"]]
    apm_http: dict[str, Literal["invalid_input", "not_found"]]
    query_return_status: dict[str, QueryRefusal]
    query_result: dict[str, Literal["record", "not_found", "failed"]]
    query: QueryReading


class GatewayInterface(_Table):
    """Everything the client knows of the gateway's interface, in one frozen value."""

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
    ) -> "GatewayInterface":
        """The interface of one profile, from the three parsed TOML files.

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

    def batch(self, operation: str) -> OperationFormat:
        """The wire format of one operation that is sent in batches, be it of one row.

        Raises:
            InterfaceError: the profile does not describe the operation.
        """
        described: dict[str, OperationFormat] = {**self.profile.batch, **self.profile.single}
        found = described.get(operation)
        if found is None:
            known = ", ".join(sorted(described))
            msg = f"profiles.toml describes no batch operation {operation!r} (described: {known})"
            raise InterfaceError(msg)
        return found

    def payment(self, operation: str) -> PaymentFormat:
        """The wire format of an operation that starts a payment."""
        found: PaymentFormat = getattr(self.profile.payment, operation)
        return found


def _read(table: type[Table], *, tables: Mapping[str, Any], file: str, profile: str) -> Table:
    try:
        return table.model_validate(_layered(tables, file=file, profile=profile))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False)
        )
        msg = f"{file}.toml, profile {profile}: {problems}"
        raise InterfaceError(msg) from None


def _layered(tables: Mapping[str, Any], *, file: str, profile: str) -> dict[str, Any]:
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
    return merged


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
    """Every operation needs its template, reply rule and statuses; else money would be guessed."""
    signed = {*interface.profile.batch, *interface.profile.single, "retrievalTrans"}
    signed |= {"retrievalRefund"} if interface.profile.query.retrievalRefund else set()
    payments = {"authorise_card", "authorise_apm", "checkout", "payment_reply"}
    for file, table, needed in (
        ("signature.toml, templates", interface.signature.templates, signed | payments),
        ("signature.toml, replies", interface.signature.replies, signed),
        (
            "status_map.toml, row_status",
            interface.status_map.row_status,
            signed - {"retrievalTrans", "retrievalRefund"},
        ),
    ):
        missing = sorted(needed - set(table))
        if missing:
            msg = f"{file}: nothing is said of {', '.join(missing)}"
            raise InterfaceError(msg)
