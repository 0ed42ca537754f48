"""Rows that a layout leaves out: counted by rule, and never a record."""

import random

import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.whole_read import read_table

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,Type,Line"
SUBTOTALS = {"column": "Type", "words": ["Subtotal *", "Opening balance"]}


def order(number, *, amount="10.00", kind="", line="1"):
    """One order that is right in every cell."""
    return f"100042,100042001,{number},EUR,{amount},paid,2026-01-05T10:00:00Z,{kind},{line}"


def read(path, /, **layout):
    """A file of orders by this layout."""
    rules = FileLayout.model_validate(layout)
    return read_table(path, kind=SourceKind.ORDERS, rules=Rules(), layout=rules)


def amounts(table):
    """Order number -> minor units."""
    frame = table.frame
    return dict(zip(frame["order_no"], frame["amount"].tolist(), strict=True))


def test_a_heading_with_too_few_cells_is_left_out(order_csv):
    rows = ["North,,", order("A-1"), "South", order("A-2"), "100042,100042001,A-3"]
    headings = {"column": "merchant_id", "words": ["North", "South"]}
    table = read(order_csv("\n".join([HEADER, *rows]) + "\n"), skip=[headings])
    assert table.source_file.skipped_by == "merchant_id = North: 1; merchant_id = South: 1"
    assert [(reject.line, reject.column) for reject in table.rejects] == [(6, "(row)")]
    assert table.source_file.rows_read == 5


def test_a_word_that_stands_twice_counts_its_rows_once(order_csv):
    text = "\n".join([HEADER, "North", order("A-1"), "North"]) + "\n"
    headings = {"column": "merchant_id", "words": ["North"]}
    counts = read(order_csv(text), skip=[headings, headings]).source_file
    assert (counts.rows_read, counts.skipped_by) == (3, "merchant_id = North: 2")


ITEM = "100042,100042001,{0},,,,,,{1}"
LINES = {
    "under their order": ([order("A-1"), ITEM.format("A-1", 2), ITEM.format("", 3)], 2, []),
    "that say the order again": ([order("A-1"), order("A-1", line="2")], 1, []),
    "with another amount": (
        [order("A-1"), order("A-1", line="2", amount="3.00")],
        0,
        [(3, "reads as a record")],
    ),
    "with an order's cells but its number": (
        [order("A-1"), order("", line="2", amount="3.00")],
        0,
        [(3, "reads as a record")],
    ),
    "before any order": (
        [ITEM.format("A-1", 2), order("A-1")],
        0,
        [(2, "has no first line above")],
    ),
    "under another order": (
        [order("A-1"), ITEM.format("A-2", 2)],
        0,
        [(3, "has no first line above")],
    ),
    "under a row that is not read": (
        [order("A-1"), order("A-2") + ",x", ITEM.format("", 2)],
        0,
        [(3, "has 10 cells"), (4, "has no first line above")],
    ),
    "of no line": ([order("A-1"), order("A-2", line="")], 0, []),
}


@pytest.mark.parametrize(("rows", "skipped", "rejects"), LINES.values(), ids=LINES)
def test_item_lines_belong_to_the_record_above(order_csv, rows, skipped, rejects):
    path = order_csv("\n".join([HEADER, *rows]) + "\n")
    table = read(path, lines={"column": "Line", "first": "1"})
    assert table.source_file.rows_skipped == skipped
    assert [reject.line for reject in table.rejects] == [line for line, _ in rejects]
    for reject, (_, told) in zip(table.rejects, rejects, strict=True):
        assert reject.reason.startswith(told)
    counts = table.source_file
    assert counts.rows_read == len(rows) == len(table.frame) + len(rejects) + skipped


def test_a_settled_line_is_never_only_told_again(tmp_path):
    """Each settled line is money, though it repeats the one above: two equal refunds are two."""
    path = tmp_path / "s.csv"
    line = "B1,1,2,2026-01-05,refund,A-1,,,EUR,-5.00,0.00,-5.00"
    names = "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id"
    path.write_text(f"{names},reference_no,currency,gross,fee,net,Line\n{line},1\n{line},2\n")
    layout = FileLayout.model_validate({"lines": {"column": "Line", "first": "1"}})
    table = read_table(path, kind=SourceKind.SETTLEMENT, rules=Rules(), layout=layout)
    assert [(reject.line, reject.batch_id) for reject in table.rejects] == [(3, "B1")]


def test_declared_rows_are_records(order_csv):
    text = "\n".join([HEADER, order("A-1"), ",,,EUR,10.00,,,Subtotal EUR,", "END,1,10.00"]) + "\n"
    trailer = {"word": "END", "rows": 2, "amount": 3}
    table = read(order_csv(text), skip=[SUBTOTALS], trailer=trailer)
    assert amounts(table) == {"A-1": 1000}
    with pytest.raises(SourceUnreadableError, match="lacks the column Kind"):
        read(order_csv(text), skip=[{"column": "Kind", "words": ["x"]}], trailer=trailer)


def test_no_rule_takes_money_without_a_word(order_csv):
    rules = {
        "skip": [{"column": "Type", "words": ["Subtotal *"]}],
        "lines": {"column": "Line", "first": "1"},
    }
    chance, kept, rejected = random.Random(51), 0, 0
    choices = {
        "order_no": ("A-1", "A-2", "A-3", ""),
        "amount": ("1.00", "2.00", "", "x"),
        "type": ("", "", "Sale", "Subtotal EUR"),
        "line": ("1", "1", "2", ""),
    }
    for _ in range(60):
        rows = []
        for _ in range(12):
            number, amount, kind, line = (chance.choice(of) for of in choices.values())
            rows.append(order(number, amount=amount, kind=kind, line=line))
        path = order_csv("\n".join([HEADER, *rows]) + "\n")
        plain, table = read(path), read(path, **rules)
        counts = table.source_file
        assert counts.rows_read == len(table.frame) + len(table.rejects) + counts.rows_skipped
        now = set(table.frame["line"].tolist()), {reject.line for reject in table.rejects}
        before = dict(zip(plain.frame["line"].tolist(), amounts_of(plain), strict=True))
        silent = set(before) - now[0] - now[1]
        again = {line for line in silent if before[line] in amounts_of(table)}
        assert silent == again
        kept, rejected = kept + len(silent), rejected + len(set(before) & now[1])
    assert kept > 0
    assert rejected > 0


def amounts_of(table):
    """Order number and minor units of each row."""
    frame = table.frame
    return list(zip(frame["order_no"], frame["amount"].tolist(), strict=True))
