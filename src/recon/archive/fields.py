"""The columns that files of a night are made of, each with words for people and its unit."""

from dataclasses import dataclass

import pyarrow as pa

MINOR_UNITS = "minor units of the currency"
ROWS = "rows"
UTC_MICROSECONDS = "microseconds, UTC"
INSTANT = pa.timestamp("us", tz="UTC")
ISO_DATE = "ISO date"


@dataclass(frozen=True, slots=True)
class FileSchema:
    """One file of a night's folder."""

    name: str
    folder: str
    """Folder beside which it stands: inputs, compared, results or proof."""
    columns: pa.Schema
    """Fields with `doc` and, where there is one, `unit` in their metadata."""
    key: tuple[str, ...]
    """Columns by which its rows are sorted."""
    version: int = 1

    @property
    def path(self) -> str:
        """Where it stands, from the night's folder."""
        return f"{self.folder}/{self.name}.parquet"

    @property
    def label(self) -> bytes:
        """Name and version, as they stand in the file's metadata."""
        return f"{self.name}/{self.version}".encode()


def field(
    name: str, kind: pa.DataType, doc: str, *, unit: str = "", nullable: bool = False
) -> pa.Field:
    """A column of any type."""
    metadata = {"doc": doc, "unit": unit} if unit else {"doc": doc}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def word(name: str, doc: str) -> pa.Field:
    """Text of few different values."""
    return field(name, pa.dictionary(pa.int32(), pa.string()), doc)


def text(name: str, doc: str, *, unit: str = "") -> pa.Field:
    """Text."""
    return field(name, pa.string(), doc, unit=unit)


def money(name: str, doc: str) -> pa.Field:
    """An amount that each row has."""
    return field(name, pa.int64(), doc, unit=MINOR_UNITS)


def money_or_blank(name: str, doc: str) -> pa.Field:
    """An amount that a row may lack."""
    return field(name, pa.int64(), f"{doc}; null: not given", unit=MINOR_UNITS, nullable=True)


def count(name: str, doc: str) -> pa.Field:
    """How many rows."""
    return field(name, pa.int64(), doc, unit=ROWS)


def instant(name: str, doc: str) -> pa.Field:
    """A moment that a row may lack."""
    return field(name, INSTANT, f"{doc}; null: not given", unit=UTC_MICROSECONDS, nullable=True)


def file(
    name: str,
    *columns: pa.Field,
    key: tuple[str, ...],
    folder: str,
    version: int = 1,
) -> FileSchema:
    """A file of these columns."""
    return FileSchema(name, folder, pa.schema([*columns]), key, version)


MERCHANT = word("merchant_id", "the merchant, as the gateway names it")
ACCOUNT = word("account_id", "the merchant's account at the gateway")
ORDER_NO = text("order_no", "the merchant's order number; blank: the row names no order")
TRANSACTION = text("transaction_id", "the payment's number at the gateway")
REFERENCE = text("reference_no", "another number by which the row names a payment")
CURRENCY = word("currency", "ISO 4217 code of the amounts of this row")
SOURCE = word("source", "the file or service that the row came from")
LINE = field("line", pa.int64(), "the line where the row starts in its source", unit="line")
KEY = (MERCHANT, ACCOUNT, ORDER_NO)
FROM = (SOURCE, LINE)
BY_KEY = ("merchant_id", "account_id", "order_no")
BREAK_ID = text("break_id", "the break's id: the same as long as it is open")
ORDER = (
    *KEY,
    CURRENCY,
    money("amount", "what was ordered"),
    word("status", "what the merchant says became of the order"),
    instant("ordered_at", "when it was ordered"),
    TRANSACTION,
    money_or_blank("expected_captured_amount", "what is to be captured of it"),
    money_or_blank("refund_amount", "what was given back"),
    instant("updated_at", "since when this row holds; the newest row of an order counts"),
)
"""What a row of an order file says, in files of facts and in the inputs of a night."""
SETTLED = (
    ORDER_NO,
    TRANSACTION,
    REFERENCE,
    CURRENCY,
    money("gross", "what the line moves, signed from the merchant's side"),
    money("fee", "what the gateway keeps of it"),
    money("net", "gross less fee; of a payout row what was paid out"),
    text("own_reference", "our number, where the line is of a payout that we asked for"),
)
"""What a settlement line says of its payment, there and there."""
