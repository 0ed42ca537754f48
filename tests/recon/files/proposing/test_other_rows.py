"""Rows of samples that are no records: found where the sample proves them, else asked."""

from pathlib import Path

import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.proposing.proposal import Proposal, proposal_of
from recon.files.typing.table_schema import ORDER_FILE, SETTLEMENT_FILE, TableSchema
from recon.files.typing.typed_table import Table, read_table

HEADER = "Order,Currency,Total,Status,Created,Line,Type"
ONE, TWO, THREE = (f"A-{n},EUR,{n}0.00,paid,2026-11-2{n}T10:00:00Z,1,Sale" for n in (1, 2, 3))
CONSTANTS = {"merchant_id": "100042", "account_id": "100042001"}


def proposed(
    folder: Path, *rows: str, header: str = HEADER, schema: TableSchema = ORDER_FILE, **answers: str
) -> Proposal:
    """The proposal for a file of these rows; a point in the key of an answer is written `__`."""
    path = folder / "sample.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    given = {key.replace("__", "."): text for key, text in answers.items()}
    return proposal_of([read_bytes(path)], schema=schema, constants=CONSTANTS, answers=given)


def read(folder: Path, found: Proposal) -> Table:
    """The sample by its layout."""
    layout = FileLayout.model_validate(found.layout)
    path = folder / "sample.csv"
    return read_table(path, kind=ORDER_FILE.kind, rules=Rules(), layout=layout, schema=ORDER_FILE)


TERMS = {
    "a subtotal in the middle": (",EUR,10.00,,,,Subtotal", "Subtotal"),
    "with its day": (",EUR,10.00,,,,Zwischensumme 21.11.", "Zwischensumme *"),
    "an opening row": (",,0.00,,,,Opening balance", "Opening balance"),
}


@pytest.mark.parametrize(("row", "word"), TERMS.values(), ids=TERMS)
def test_a_term_that_no_record_has_is_taken(tmp_path: Path, row: str, word: str) -> None:
    """Columns are known all the same; the records' amounts are read and nothing is rejected."""
    found = proposed(tmp_path, ONE, row, TWO, THREE)
    assert found.questions == {}
    assert found.layout["skip"] == [{"column": "Type", "words": [word]}]
    table = read(tmp_path, found)
    assert table.frame["amount"].tolist() == [1000, 2000, 3000]
    assert (table.source_file.rows_skipped, table.rejects) == (1, ())


def test_a_term_on_a_row_that_reads_like_a_record_is_asked(tmp_path: Path) -> None:
    """`none` leaves the row a record; the word itself makes the rule."""
    odd = THREE.replace("Sale", "Total")
    asked = proposed(tmp_path, ONE, TWO, odd, TWO.replace("A-2", "A-4"))
    assert list(asked.questions) == ["skip.Type"]
    assert "skip" not in asked.layout
    record = proposed(tmp_path, ONE, TWO, odd, skip__Type="none")
    assert record.questions == {}
    assert read(tmp_path, record).frame["amount"].tolist() == [1000, 2000, 3000]
    rule = proposed(tmp_path, ONE, TWO, odd, skip__Type="Total")
    assert [reject.order_no for reject in read(tmp_path, rule).rejects] == ["A-3"]


@pytest.mark.parametrize("heading", ["Shop North", "Shop North,,,,,,"])
def test_a_heading_is_asked(tmp_path: Path, heading: str) -> None:
    """Its words are nobody's; who knows them says how they begin."""
    asked = proposed(tmp_path, heading, ONE, TWO)
    assert list(asked.questions) == ["skip.Order"]
    found = proposed(tmp_path, heading, ONE, TWO, skip__Order="Shop *")
    assert found.questions == {}
    table = read(tmp_path, found)
    assert table.frame["amount"].tolist() == [1000, 2000]
    assert table.source_file.skipped_by == "Order = Shop *: 1"


LINES = {
    "numbered": (["A-1,,,,,2,Sale", ",,,,,3,Sale"], {"column": "Line", "first": "1"}),
    "numbered, and the order told again": (
        [ONE.replace(",1,", ",2,"), ONE.replace(",1,", ",3,")],
        {"column": "Line", "first": "1"},
    ),
    "told by a blank": (["A-1,,,,,,Sale", "A-1,,,,,,Sale"], {"column": "Total"}),
}


@pytest.mark.parametrize(("items", "key"), LINES.values(), ids=LINES)
def test_two_item_lines_prove_how_they_are_told(
    tmp_path: Path, items: list[str], key: dict[str, str]
) -> None:
    """The order is read once, with the amount of its first line; one line alone is asked."""
    header, one, two = HEADER, ONE, TWO
    if "first" not in key:
        header, one, two = (
            text.replace(",Line", ",Note").replace(",1,S", ",,S") for text in (HEADER, ONE, TWO)
        )
    found = proposed(tmp_path, one, *items, two, header=header)
    assert (found.questions, found.layout["lines"]) == ({}, key)
    table = read(tmp_path, found)
    assert table.frame["amount"].tolist() == [1000, 2000]
    assert (table.source_file.rows_skipped, table.rejects) == (2, ())
    asked = proposed(tmp_path, one, items[0], two, header=header)
    assert list(asked.questions) == ["lines.column"]
    answers = {f"lines__{part}": text for part, text in key.items()}
    told = proposed(tmp_path, one, items[0], two, header=header, **answers)
    assert (told.questions, told.layout["lines"]) == ({}, key)
    assert read(tmp_path, told).source_file.rows_skipped == 1


def test_lines_with_amounts_of_their_own_are_asked(tmp_path: Path) -> None:
    """Each could be a part of its order or all of it; each settled line is money."""
    items = [ONE.replace("10.00", "4.00").replace(",1,", f",{n},") for n in (2, 3)]
    assert "lines.column" in proposed(tmp_path, ONE, *items, TWO).questions
    settled = proposed(tmp_path, ONE, *items, TWO, schema=SETTLEMENT_FILE)
    assert "lines.column" not in settled.questions
    assert "lines" not in settled.layout
