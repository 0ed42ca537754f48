"""Outgoing messages: models that hide private values in reprs and errors, checks, and bytes."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import quote_plus

from lxml import etree
from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr

from recon.gateway_client.errors import InvalidRequestError, RowProblem
from recon.gateway_client.interface import CallFormat, FieldPatterns, GatewayInterface, OurAccount
from recon.privacy.foreign_text import masked_values, redacted, without_values

HIDDEN = "…"
NOTHING: Mapping[str, Any] = MappingProxyType({})
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_PATTERNED = frozenset(FieldPatterns.model_fields)
CURRENCIES = frozenset({"currency", "payment_currency", "source_currency"})
"""Fields that hold the currency of an amount."""


VISIBLE = "shown"
"""Marks a field that identifies no person and no account; all others are private."""
NUMBER = "number"
"""Marks a field that is sent as a number."""


class PrivateFields(BaseModel):
    """A message that masks all fields in its repr and errors, except those marked SHOWN."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
    )
    visible: ClassVar[frozenset[str]]
    numbers: ClassVar[frozenset[str]]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Collect the fields that have each mark."""
        marks = {name: field.metadata for name, field in cls.model_fields.items()}
        cls.visible = frozenset(name for name, own in marks.items() if VISIBLE in own)
        cls.numbers = frozenset(name for name, own in marks.items() if NUMBER in own)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of filled fields, with values only of those that may be shown."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value:
                yield name, value if name in self.visible else HIDDEN


def _exact(value: object) -> object:
    if isinstance(value, float | bool):
        msg = "an amount is text, a whole number or a Decimal, never a float"
        raise ValueError(msg)  # noqa: TRY004 - pydantic makes a ValidationError of a ValueError only
    return value


Amount = Annotated[Decimal, BeforeValidator(_exact)]
"""An amount in major units; a float would already have lost digits."""
VisibleText = Annotated[str, VISIBLE]
VisibleAmount = Annotated[Amount, VISIBLE]
VisibleOptional = Annotated[Amount | None, VISIBLE]


def wire_value(value: object) -> Any:
    """Return a field as sent: text, JSON numbers, and objects without blank fields."""
    if isinstance(value, PrivateFields):
        return {
            # Only statistics about a shopper are numbers, never our own amounts.
            name: (int(part) if part == int(part) else float(part))
            if name in value.numbers
            else wire_value(part)
            for name, part in given_fields(value)
        }
    if isinstance(value, tuple):
        return [wire_value(part) for part in value]
    if isinstance(value, dict):
        return {name: wire_value(part) for name, part in value.items()}
    return text_of_field(value)


def text_of_field(value: object) -> str:
    """Return a plain field as text; amounts without exponent, secrets in clear text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def keeps_digits(value: object) -> bool:
    """Return whether JSON can hold a number without losing digits; True for other types."""
    if not isinstance(value, Decimal):
        return True
    return value.is_finite() and Decimal(repr(float(value))) == value


def given_fields(value: PrivateFields) -> list[tuple[str, Any]]:
    """Return names and values of the fields that are not blank, in document order."""
    pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
    return [(name, part) for name, part in pairs if not is_blank(part)]


def is_blank(value: object) -> bool:
    """Return whether a field was not given; it is not sent then."""
    if isinstance(value, PrivateFields):
        return not given_fields(value)
    if isinstance(value, SecretStr):
        return not value.get_secret_value()
    return value is None or value in ("", (), {})


def private_texts(value: PrivateFields) -> frozenset[str]:
    """Return every text of a message that must not be stored or shown in clear."""
    return frozenset(text_of_field(part) for _, part in given_leaves(value, hidden_only=True))


def given_leaves(
    value: PrivateFields, *, path: str = "", hidden_only: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every plain field that was given, or only of the private ones.

    Dots in a path lead into objects; `path` is that of the message itself.
    """
    for name, part in given_fields(value):
        if hidden_only and name in value.visible:
            continue
        below = f"{path}.{name}" if path else name
        for at, element in _elements(part, path=below):
            if isinstance(element, PrivateFields):
                yield from given_leaves(element, path=at, hidden_only=hidden_only)
            else:
                yield at, element


def text_problem(
    place: str, *, text: str, interface: GatewayInterface, grammar: Mapping[str, str] = NOTHING
) -> str:
    """Like `text_check`, for one text."""
    return text_check(place, interface=interface, grammar=grammar)(text)


def text_check(
    place: str, *, interface: GatewayInterface, grammar: Mapping[str, str] = NOTHING
) -> Callable[[str], str]:
    """Return a function that returns why a text must not be sent in this field, or "".

    In `place` dots lead into objects; `grammar` has the operation's patterns by last name.
    """
    profile = interface.profile
    own = getattr(profile.grammar, place) if place in _PATTERNED else ""
    longest = profile.lengths.get(place, profile.text_characters_max)
    pattern = grammar.get(place.rpartition(".")[2], own) if grammar else own
    form = re.compile(pattern, re.ASCII).fullmatch if pattern else None

    def problem(text: str) -> str:
        if form is not None and form(text) is None:
            return f"does not have the form {pattern}"
        if _CONTROL.search(text):
            return "has characters that cannot be sent"
        if len(text) > longest:
            return f"is longer than {longest} characters"
        return profile.amounts.currency_problem(text) if place in CURRENCIES else ""

    return problem


def text_problems(
    message: PrivateFields, *, interface: GatewayInterface, grammar: Mapping[str, str] = NOTHING
) -> Iterator[tuple[str, str]]:
    """Yield (path, reason) of each text field that must not be sent, like `text_problem`."""
    for place, value in given_leaves(message):
        if isinstance(value, str | SecretStr):
            text = text_of_field(value)
            if reason := text_problem(place, text=text, interface=interface, grammar=grammar):
                yield place, reason


def amount_problem(
    value: object,
    *,
    currency: str,
    interface: GatewayInterface,
    field: str = "amount",
    may_be_zero: bool = False,
) -> str:
    """Like `WireAmounts.problem`; also checks the pattern and length of `field`."""
    amounts = interface.profile.amounts
    problem = amounts.problem(value, currency=currency, may_be_zero=may_be_zero)
    if problem or not isinstance(value, Decimal):
        return problem
    text = amounts.written(value, currency=currency)
    return text_problem(field, text=text, interface=interface)


def _elements(part: object, *, path: str) -> list[tuple[str, Any]]:
    if isinstance(part, dict):
        return [(f"{path}.{name}", element) for name, element in part.items()]
    if isinstance(part, tuple):
        return [(f"{path}[{position}]", element) for position, element in enumerate(part)]
    return [(path, part)]


_PLAIN = re.compile(r"[A-Za-z0-9_.~,-]*", re.ASCII)

XML_ROOT = "request"
"""The API document does not show the root element of XML requests."""


def request_body(message: Mapping[str, Any], *, body: Literal["json", "form", "xml"]) -> bytes:
    """Encode a message of texts, integers, objects and lists of these, in its order.

    A form contains objects and lists as JSON text, XML as elements (a list repeats the name).
    """
    if body == "json":
        return _json(message).encode("ascii")
    if body == "form":
        flat = {
            name: value if isinstance(value, str | int) else _json(value)
            for name, value in message.items()
        }
        return "&".join(f"{_quoted(name)}={_quoted(text)}" for name, text in flat.items()).encode()
    root = etree.Element(XML_ROOT)
    _fill(root, message=message)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def _quoted(value: str | int) -> str:
    """Quote like `urllib.parse.urlencode`, but much faster for a hundred plain keys."""
    text = str(value)
    return text.replace(",", "%2C") if _PLAIN.fullmatch(text) else quote_plus(text)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _fill(element: etree._Element, *, message: Mapping[str, Any]) -> None:
    for name, value in message.items():
        for part in value if isinstance(value, list | tuple) else (value,):
            child = etree.SubElement(element, name)
            if isinstance(part, Mapping):
                _fill(child, message=part)
            else:
                child.text = str(part)


PROBLEMS_DISPLAYED_MAX = 5
BODY_WORD_MIN = 6
MESSAGE_WORD_MIN = 3
"""In a message a word too many may be masked; a body is evidence and should stay intact."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,50}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """A request ready to be sent; one that moves money is journalled first, and sent once."""

    operation: str
    """Name of the operation in signature.toml, such as retrievalTrans."""
    path: str
    content_type: str
    body: bytes = field(repr=False)
    body_sha256: str
    """SHA-256 of `body`, in hexadecimal."""
    signature: str
    account: OurAccount = field(repr=False, compare=False)
    """The account that made the request and reads its reply."""
    private: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of the request that must not be stored or shown in clear."""

    @classmethod
    def of(
        cls,
        fields: Mapping[str, Any],
        *,
        described: CallFormat,
        account: OurAccount,
        signature: str,
        private: frozenset[str] = frozenset(),
        **more: Any,
    ) -> Self:
        """Build a call from its own fields; `more` holds the further attributes of the class."""
        message = account.message(fields, signature=signature)
        body = request_body(message, body=described.body)
        return cls(
            path=described.path,
            content_type=described.content_type,
            body=body,
            body_sha256=hashlib.sha256(body).hexdigest(),
            signature=signature,
            account=account,
            private=private,
            **more,
        )

    def masked(self, text: bytes) -> bytes:
        """Mask every private value of the request in a text, such as the body or its reply.

        Values too short to be distinctive are masked only where they are quoted.
        """
        # The key is not part of the request: it is masked even within a longer word.
        without_private_values = without_values(text, values=self.account.private)
        return masked_values(without_private_values, values=self.private, word_min=BODY_WORD_MIN)

    def masked_text(self, text: str) -> str:
        """Return external text that is safe to store and show, without private values."""
        given = without_values(text.encode(errors="replace"), values=self.account.private)
        masked = masked_values(given, values=self.private, word_min=MESSAGE_WORD_MIN)
        return redacted(masked.decode(errors="replace"))

    def stored_id(self, text: str) -> str:
        """Return a gateway id as it is, even if its digits look like a card number."""
        plain = _ID.fullmatch(text) is not None and text not in self.private
        return text if plain else self.masked_text(text)


def refuse(what: str, *, problems: Sequence[RowProblem]) -> None:
    """Raise InvalidRequestError if there are problems, quoting the first ones."""
    if problems:
        more = len(problems) - PROBLEMS_DISPLAYED_MAX
        reasons = "; ".join(map(str, problems[:PROBLEMS_DISPLAYED_MAX]))
        reasons += f" and {more} more" if more > 0 else ""
        msg = f"this {what} must not be sent: {reasons}; nothing was sent"
        raise InvalidRequestError(msg, problems=tuple(problems))


def refuse_account(account: OurAccount) -> None:
    """Raise InvalidRequestError if merchant, account or key are unusable for signing."""
    for name in ("merchant_id", "account_id"):
        reason = text_problem(name, text=getattr(account, name), interface=account.interface)
        if reason:
            msg = f"{name} {reason}; nothing was sent"
            raise InvalidRequestError(msg)
    key = account.sign_key
    if isinstance(key, SecretStr) and not key.get_secret_value():
        msg = "the sign key is empty; nothing was sent"
        raise InvalidRequestError(msg)
