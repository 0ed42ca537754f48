"""The gateway's interface as data: three TOML tables, read into one checked value.

`profiles`, `signature` and `status_map` each hold the layers base < extended < user; the layers of
the chosen profile are laid on top of each other here. Used by every other module of the client.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from recon.gateway_client.interface.operation_formats import (
    BatchOperation,
    FieldPatterns,
    InterfaceTable,
    OperationFormat,
    PaymentFormat,
    PaymentFormats,
    QueryOperations,
    SingleOperation,
)
from recon.gateway_client.interface.wire_amounts import WireAmounts
from recon.gateway_client.wire.wire_errors import InterfaceError

CHARACTERS_MAX = 1_000_000
Table = TypeVar("Table", bound=BaseModel)
USER = "user"
LAYERS = ("base", "extended", USER)
"""Lowest first; `extended` counts only in the profile of that name."""

UNREAD = frozenset({"checkout", "payment_reply"})
"""Templates without a rule for replies: a hosted page carries no signature."""

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
    """Of a text field that has no length of its own."""
    grammar: FieldPatterns
    amounts: WireAmounts
    lengths: dict[str, Annotated[int, Field(ge=1, le=CHARACTERS_MAX)]]
    batch: dict[str, BatchOperation]
    single: dict[str, SingleOperation]
    payment: PaymentFormats
    query: QueryOperations


class SignatureRules(InterfaceTable):
    """How requests are signed and what a reply's signature must be."""

    algorithm: Literal["sha256", "hmac-sha256"]
    whitespace: Literal["remove-spaces", "strip", "none"]
    hex_case: Literal["lower", "upper"]
    templates: dict[str, tuple[str, ...]]
    replies: dict[str, ReplyRule]

    def may_lack(self, operation: str) -> bool:
        """Whether a reply of this operation is trusted without any signature."""
        return self.replies[operation].endswith("-or-absent")

    def is_echo(self, operation: str) -> bool:
        """Whether a reply of this operation repeats the signature of its request."""
        return self.replies[operation].startswith("echo")


class Refusals(InterfaceTable):
    """When a whole money request counts as refused before processing."""

    signature_codes: frozenset[str]
    before_processing_codes: frozenset[str]
    before_processing_http: frozenset[Annotated[int, Field(ge=400, le=499)]]
    refusal_is_final: bool
    """The merchant has the gateway's word: a 429 or 503 with Retry-After processed nothing."""


class DescribedQuery(InterfaceTable):
    """How answers of the order query are read."""

    row_missing_when_asked_alone: Literal["failed", "not_found"]
    refund_missing_when_asked_alone: Literal["failed", "not_found"]
    timezone: Annotated[str, AfterValidator(_zone)]


class StatusMap(InterfaceTable):
    """What the gateway's codes mean."""

    return_status: dict[str, Literal["accepted", "refused"]]
    row_status: dict[str, dict[str, RowWord]]
    refusals: Refusals
    order_status: dict[str, Literal["done", "failed", "pending"]]
    apm_http: dict[str, Literal["invalid_input", "not_found"]]
    query_return_status: dict[str, QueryRefusal]
    query_result: dict[str, Literal["record", "not_found", "failed"]]
    query: DescribedQuery


class GatewayInterface(InterfaceTable):
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
    ) -> Self:
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

    @classmethod
    def bundled(cls, profile: str = "base", *, user: UserLayers | None = None) -> Self:
        """The interface as it ships with the package.

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

    def batch(self, operation: str) -> OperationFormat:
        """The wire format of one operation that is sent in batches, be it of one row.

        Raises:
            InterfaceError: the profile does not describe the operation.
        """
        described: dict[str, OperationFormat] = {**self.profile.batch, **self.profile.single}
        batch_format = described.get(operation)
        if batch_format is None:
            known = ", ".join(sorted(described))
            msg = f"profiles.toml describes no batch operation {operation!r} (described: {known})"
            raise InterfaceError(msg)
        return batch_format

    def payment(self, operation: str) -> PaymentFormat:
        """The wire format of an operation that starts a payment."""
        payment_format: PaymentFormat = getattr(self.profile.payment, operation)
        return payment_format


def _bundled(name: str) -> dict[str, Any]:
    """A file of the wheel, or of the checkout that this module lies in."""
    here = Path(__file__)
    shipped = here.parents[2] / "_config"
    folder = shipped if shipped.is_dir() else here.parents[4] / "config"
    return tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))


def _read(table: type[Table], *, tables: Mapping[str, Any], file: str, profile: str) -> Table:
    try:
        return table.model_validate(_layered(tables, file=file, profile=profile))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False)
        )
        msg = f"{file}.toml, profile {profile}: {problems}"
        raise InterfaceError(msg) from error


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
    moving = {*interface.profile.batch, *interface.profile.single}
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
