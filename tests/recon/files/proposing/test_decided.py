"""What a sample decides and what it leaves to a person, a few rows at a time."""

import json
import tomllib
from typing import Any

import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.proposing.proposal import Proposal, layout_text, pattern_of, proposal_of
from recon.files.typing.table_schema import ORDER_FILE, SETTLEMENT_FILE
from recon.model.errors import SourceUnreadableError
from tests.recon.files.proposing.exports import ACCOUNT, MERCHANT
from tests.recon.files.whole_read import read_table

CONSTANTS = {"merchant_id": MERCHANT, "account_id": ACCOUNT}


def of_bytes(path, content, *, schema=ORDER_FILE, answers=None):
    """The proposal for a file of these bytes."""
    path.write_bytes(content)
    files = [read_bytes(path)]
    return proposal_of(files, schema=schema, constants=CONSTANTS, answers=answers or {})


def read(path, found, *, schema=ORDER_FILE):
    layout = FileLayout.model_validate(found.layout)
    return read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)


AT = "2026-11-20T10:00:00Z"
NAMES = "order_no;amount;currency;status;ordered_at"


def orders(*rows):
    """Orders as `amount` or `amount;currency;status;ordered_at`, what lacks as our own files."""
    given = (row.split(";") for row in rows)
    full = ([*cells, *("EUR", "paid", AT)[len(cells) - 1 :]] for cells in given)
    lines = (";".join([f"A{n}", *cells]) for n, cells in enumerate(full, start=1))
    return "\n".join([NAMES, *lines, ""]).encode()


AMOUNTS = ("decimal_sign", "thousands_sign", "minus", "units")


@pytest.mark.parametrize(
    ("texts", "currency", "keys", "asked"),
    [
        (("10.00", "7.50"), "EUR", {}, set()),
        (("1.234,50", "7,50"), "EUR", {"decimal_sign": ",", "thousands_sign": "."}, set()),
        (("1.234", "2.500"), "KWD", None, {"decimal_sign"}),
        (("1.234", "12345.678"), "KWD", {}, set()),
        (("1,234", "2,500"), "JPY", {"thousands_sign": ","}, set()),
        (("1234", "2500"), "EUR", None, {"units"}),
        (("1234", "2500"), "JPY", {}, set()),
        (("1.234", "2.500"), "EUR", None, {"units"}),
        (("12.34-", "7.50"), "EUR", {"minus": "behind"}, set()),
        ((*(f"{n}.00" for n in range(9)), "n/a"), "EUR", {}, set()),
    ],
)
def test_an_amount_that_reads_two_ways_is_asked(texts, currency, keys, asked, tmp_path):
    """1.234 is a thousand or a decimal by its currency and its neighbours, else by a person."""
    content = orders(*(f"{text};{currency}" for text in texts))
    found = of_bytes(tmp_path / "a.csv", content)
    assert set(found.questions) == asked
    if keys is not None:
        assert {key: found.layout[key] for key in AMOUNTS if key in found.layout} == keys


@pytest.mark.parametrize(
    ("texts", "times", "asked"),
    [
        (("03/04/2026", "05/06/2026"), None, {"times", "zone"}),
        (("03/04/2026", "25/06/2026"), "%-d/%-m/%Y", {"zone"}),
        (("03/04/2026", "06/25/2026"), "%-m/%-d/%Y", {"zone"}),
        (("03.04.2026", "05.06.2026"), "%-d.%-m.%Y", {"zone"}),
        (("20-11-26", "21-11-26"), None, {"times", "zone"}),
        (("26-11-26",), None, {"times", "zone"}),
        (("11/11/2026", "12/12/2026"), None, {"times", "zone"}),
        (("20/11/2026 10:30", "21/12/2026 11:00"), "%-d/%-m/%Y %-H:%M", {"zone"}),
        (("05.11.2026 09:30", "21.12.2026 11:00"), "%-d.%-m.%Y %-H:%M", {"zone"}),
        (("11112026", "20122026"), "%d%m%Y", {"zone"}),
        ((AT, "2026-11-20T10:00:00+02:00"), "", set()),
        ((AT, "2026-11-20T10:00:00"), "", {"zone"}),
        (("31.02.2026",), None, {"times"}),
    ],
)
def test_a_time_that_reads_two_ways_is_asked(texts, times, asked, tmp_path):
    found = of_bytes(tmp_path / "a.csv", orders(*(f"1.00;EUR;paid;{text}" for text in texts)))
    assert set(found.questions) == asked
    if times is not None:
        assert found.layout.get("times", "") == times


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty: give a sample with rows"),
        (" \n\n", "is empty: give a sample with rows"),
        ("a\x00b,c\n", "has no line among its first 40 that names columns known to recon"),
        (f'{NAMES}\n"never closed;', "has a quote on line 2 that is never closed"),
        ("1,2,3\n4,5,6\n", "has no line among its first 40"),
    ],
)
def test_what_is_no_table_with_a_header_is_refused(text, why, tmp_path):
    with pytest.raises(SourceUnreadableError, match=rf"^a\.csv {why}"):
        of_bytes(tmp_path / "a.csv", text.encode())


HEADER = "Order,Currency,Total,Status,Created,Line,Type"
ONE, TWO, THREE = (f"A-{n},EUR,{n}0.00,paid,2026-11-2{n}T10:00:00Z,1,Sale" for n in (1, 2, 3))


def of_rows(folder, *rows, header=HEADER, schema=ORDER_FILE, **answers):
    """The proposal for a file of these rows; a point in the key of an answer is written `__`."""
    given = {key.replace("__", "."): text for key, text in answers.items()}
    content = "\n".join([header, *rows, ""]).encode()
    return of_bytes(folder / "a.csv", content, schema=schema, answers=given)


def test_a_term_on_a_row_that_reads_like_a_record_is_asked(tmp_path):
    odd = THREE.replace("Sale", "Total")
    asked = of_rows(tmp_path, ONE, TWO, odd, TWO.replace("A-2", "A-4"))
    assert list(asked.questions) == ["skip.Type"]
    assert "skip" not in asked.layout
    record = of_rows(tmp_path, ONE, TWO, odd, skip__Type="none")
    assert record.questions == {}
    assert read(tmp_path / "a.csv", record).frame["amount"].tolist() == [1000, 2000, 3000]
    rule = of_rows(tmp_path, ONE, TWO, odd, skip__Type="Total")
    assert [reject.order_no for reject in read(tmp_path / "a.csv", rule).rejects] == ["A-3"]


def test_lines_with_amounts_of_their_own_are_asked(tmp_path):
    """Each could be a part of its order or all of it; each settled line is money."""
    items = [ONE.replace("10.00", "4.00").replace(",1,", f",{n},") for n in (2, 3)]
    assert "lines.column" in of_rows(tmp_path, ONE, *items, TWO).questions
    settled = of_rows(tmp_path, ONE, *items, TWO, schema=SETTLEMENT_FILE)
    assert "lines.column" not in settled.questions
    assert "lines" not in settled.layout


def money(value, currency="EUR", *, named="currency"):
    """An amount as an object."""
    return {"value": value, named: currency}


def as_lines(rows):
    """Objects, one a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_the_currency_of_the_amount_is_that_of_the_order(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {
            "order_no": f"A-{n}",
            "shipping": money("1.00", "USD"),
            "amount": money(f"{n}0.00", named="currency_code"),
            "refund_amount": money("1.00"),
            "status": "paid",
            "ordered_at": AT,
        }
        for n in (1, 2)
    ]
    found = of_bytes(path, as_lines(rows))
    assert found.questions == {}
    assert found.layout["columns"] == {
        "amount": "amount.value",
        "currency": "amount.currency_code",
        "refund_amount": "refund_amount.value",
    }
    assert found.layout["currencies"] == {"refund_amount": "refund_amount.currency"}
    frame = read(path, found).frame[["amount", "currency"]]
    assert frame.to_numpy().tolist() == [[1000, "EUR"], [2000, "EUR"]]


def test_other_amounts_of_a_settled_row_are_held_to_its_currency(tmp_path):
    path = tmp_path / "a.jsonl"
    header = ["batch_id", "settled_on", "entry_type", "order_no", "transaction_id", "reference_no"]
    rows: list[dict[str, Any]] = [
        dict(zip(header, ("B1", "2026-11-21", "capture", f"A-{n}", f"T{n}", ""), strict=True))
        | {"gross": money(f"{n}0.00"), "fee": money("1.00"), "net": money(f"{n - 1}9.00")}
        for n in (1, 2)
    ]
    found = of_bytes(path, as_lines(rows), schema=SETTLEMENT_FILE)
    assert found.questions == {}
    assert found.layout["currencies"] == {"fee": "fee.currency", "net": "net.currency"}
    assert read(path, found, schema=SETTLEMENT_FILE).frame["net"].tolist() == [900, 1900]
    rows[1]["fee"] = money("1.00", "USD")
    path.write_bytes(as_lines(rows))
    table = read(path, found, schema=SETTLEMENT_FILE)
    assert [reject.line for reject in table.rejects] == [2]


def test_a_layout_is_written_as_toml_reads_it():
    layout = {
        "times": "%d.%m.%Y",
        "delimiter": "\t",
        "columns": {"amount": 'Betrag "brutto"'},
        "words": {"status": {"en attente": "pending", "Rück": "refunded"}},
        "negated": ["fee"],
        "decimals": "as_written",
        "trailer": {"word": "Summe", "rows": 2},
    }
    proposal = Proposal(layout, {}, ("reference_no",), ("Kunde",))
    text = layout_text(proposal, table="[layout]", files="a-*.csv")
    assert tomllib.loads(text)["layout"] == {"files": "a-*.csv", **layout}
    assert "# not read: Kunde" in text
    assert "for no column is it: reference_no" in text


def test_the_pattern_of_names_leaves_out_their_numbers():
    assert pattern_of(["orders-2026-11-20.csv", "orders-2026-11-21.csv"]) == "orders-*.csv"
    assert pattern_of(["a.csv", "b.csv"]) == "*.csv"
