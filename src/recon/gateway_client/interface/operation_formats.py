"""How each operation looks on the wire, as tables of `profiles.toml`."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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
    """A table of which unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldPatterns(InterfaceTable):
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


class BatchOperation(InterfaceTable):
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


class SingleOperation(InterfaceTable):
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


class PaymentFormat(InterfaceTable):
    """How an operation that starts a payment looks on the wire."""

    path: WirePath
    body: Body
    content_type: ContentType


FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,49}$")]
PaymentName = Literal["authorise_card", "authorise_apm", "checkout"]


class PaymentFormats(InterfaceTable):
    """The operations that start a payment, and the names of fields that differ by brand."""

    website_field: str = Field(pattern=r"^[A-Za-z_]{1,50}$")
    antifraud_provider: str = Field(pattern=r"^[A-Za-z0-9_]{0,50}$")
    more_fields: dict[PaymentName, frozenset[FieldName]]
    """Fields that a brand takes beside the document's, per operation."""
    sent_empty: dict[PaymentName, tuple[FieldName, ...]]
    """Fields that go out empty where they are not used, per operation; others are left out."""
    page_hosts: frozenset[str]
    """Hosts, with their port where it is not the usual one, that the hosted page may lie on beside
    the gateway's own."""
    authorise_card: PaymentFormat
    authorise_apm: PaymentFormat
    checkout: PaymentFormat


OperationFormat = BatchOperation | SingleOperation


class QueryOperation(InterfaceTable):
    """How the order query looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    order_nos_field: str
    transaction_ids_field: str


class RefundQueryOperation(InterfaceTable):
    """How the search for refunds looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_max: int = Field(ge=1, le=ROWS_MAX)
    rows_field: str
    order_nos_field: str
    references_field: str


class MethodsOperation(InterfaceTable):
    """How the question for the best payment methods looks on the wire."""

    path: WirePath
    body: Literal["form", "json"]
    content_type: ContentType
    rows_field: str
    name_field: str
    """Of a method that comes as an object."""


class QueryOperations(InterfaceTable):
    """The queries the gateway offers."""

    retrievalTrans: QueryOperation  # noqa: N815 - the operation's own name in its path
    retrievalRefund: RefundQueryOperation | None = None  # noqa: N815 - the same
    optimise: MethodsOperation | None = None
