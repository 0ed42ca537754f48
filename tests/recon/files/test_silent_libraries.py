"""What libraries accept without a word, each beside what recon says of the same file."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from lxml import etree

from recon.config.rules import Rules
from recon.model.errors import SourceUnreadableError
from tests.recon.files.whole_read import read_order_file

NAMES = ("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at")
HEADER = ",".join(NAMES)
ROW = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z"
GOOD = f"{HEADER}\n{ROW}\n"
OBJECT = dict(zip(NAMES, ROW.split(","), strict=True))


def frame(text: str) -> Any:
    """What pandas makes of CSV."""
    return pd.read_csv(io.StringIO(text))


def first(text: str, column: str) -> Any:
    """What pandas makes of the first cell of a column."""
    return frame(text)[column].iloc[0]


def with_amount(text: str) -> str:
    """The good file with another amount."""
    return GOOD.replace("10.00", text)


def json_line(**changed: str) -> str:
    """A line of JSON with values as they are written here."""
    cells = {name: json.dumps(text) for name, text in OBJECT.items()} | changed
    return "{" + ", ".join(f'"{name}": {text}' for name, text in cells.items()) + "}\n"


XXE = '<!DOCTYPE o [<!ENTITY e "99">]><orders><order><amount>10.&e;00</amount></order></orders>'


def hardened(text: str) -> Any:
    """What a hardened parser makes of an amount with an entity."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    return etree.fromstring(text.encode(), parser).findtext("order/amount")


SILENT: dict[str, tuple[Callable[[], Any], Any, str, str, str]] = {
    # What the library makes of it, and that this is so; the file, and what recon says.
    "pandas: leading zeros": (
        lambda: first("a,b\n000123,x\n", "a"), 123, "csv", with_amount("000123"), "decimals of EUR"
    ),
    "pandas: infinity": (
        lambda: first("a,b\ninf,x\n", "a"), float("inf"), "csv", with_amount("inf"), "not an amount"
    ),
    "pandas: NA is nothing": (
        lambda: bool(pd.isna(first("a,b\nNA,x\n", "a"))), True, "csv",
        GOOD.replace("EUR", "NA"), "'NA' is not an ISO 4217 currency code",
    ),
    "pandas: a row wider than the header shifts": (
        lambda: first("a,b\n1,2,3\n", "a"), 2, "csv", f"{HEADER}\n{ROW},x\n", "has 8 cells where"
    ),
    "pandas: a short row is filled": (
        lambda: bool(pd.isna(frame("a,b\n1,2\n3\n")["b"].iloc[1])), True, "csv",
        f"{HEADER}\n100042,A-1\n", "has 2 cells where the header has 7",
    ),
    "pandas: a file cut in its last line": (
        lambda: first("a\n1", "a"), 1, "csv", GOOD[:-1], "has no line end, so it may have been cut"
    ),
    "Decimal: underscores": (
        lambda: Decimal("1_000.00"), Decimal(1000), "csv", with_amount("1_000.00"), "not an amount"
    ),
    "Decimal: digits of another script": (
        lambda: Decimal("\uff11\uff10.00"), Decimal(10), "csv",
        with_amount("\uff11\uff10.00"), "not an amount",
    ),
    "Decimal: exponents": (
        lambda: Decimal("1e3"), Decimal(1000), "csv", with_amount("1e309"), "not an amount"
    ),
    "Decimal: no number": (
        lambda: Decimal("NaN").is_nan(), True, "csv", with_amount("NaN"), "not an amount"
    ),
    "Decimal: signs": (
        lambda: Decimal("+10.00"), Decimal(10), "csv", with_amount("+10.00"), "not an amount"
    ),
    "json: NaN": (
        lambda: str(json.loads('{"a": NaN}')["a"]), "nan", "jsonl",
        json_line() + json_line(amount="NaN"), "has NaN, which is no JSON",
    ),
    "json: an exponent past all floats": (
        lambda: json.loads("1e309"), float("inf"), "jsonl", json_line(amount="1e309"), "1e309"
    ),
    "json: a key twice": (
        lambda: json.loads('{"a": 1, "a": 2}'), {"a": 2}, "jsonl",
        json_line() + json_line()[:-2] + ', "amount": "99.00"}\n', "has a key twice",
    ),
    "json: half a character": (
        lambda: len(json.loads('"\\ud800"')), 1, "jsonl",
        json_line() + json_line(order_no='"\\ud800"'), "has half a character",
    ),
}  # fmt: skip
WHOLE: dict[str, tuple[Callable[[], Any], Any, str, str, str]] = {
    "lxml: an entity cuts the text": (
        lambda: hardened(XXE), "10.", "xml", XXE, "has a document type"
    ),
    "pandas: a NUL": (
        lambda: len(first('a,b\n"x\0y",1\n', "a")) < 4, True, "csv", with_amount("1\x000.00"),
        "has a NUL at byte",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("library", "makes", "ending", "text", "told"), SILENT.values(), ids=SILENT
)
def test_what_a_library_accepts_silently_is_a_rejected_row(
    tmp_path: Path, library: Callable[[], Any], makes: Any, ending: str, text: str, told: str
) -> None:
    """The library raises nothing, and recon names the row and takes nothing of it."""
    assert library() == makes
    path = tmp_path / f"orders.{ending}"
    path.write_text(text)
    read = read_order_file(path, rules=Rules())
    (reject,) = read.rejects
    assert told in reject.reason
    assert len(read.orders) == read.source_file.rows_read - 1


@pytest.mark.parametrize(("library", "makes", "ending", "text", "told"), WHOLE.values(), ids=WHOLE)
def test_what_a_library_accepts_silently_is_a_refused_file(
    tmp_path: Path, library: Callable[[], Any], makes: Any, ending: str, text: str, told: str
) -> None:
    """The library raises nothing, and recon takes nothing of the file."""
    assert library() == makes
    path = tmp_path / f"orders.{ending}"
    path.write_text(text)
    with pytest.raises(SourceUnreadableError, match=told):
        read_order_file(path, rules=Rules())


def test_parsers_of_xml_are_those_that_were_judged() -> None:
    """The workbook library has its safe parser; libxml2 is not older than the one judged."""
    assert openpyxl.DEFUSEDXML is True
    assert etree.LIBXML_VERSION >= (2, 11)
