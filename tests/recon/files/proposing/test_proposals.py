import os
from collections import Counter
from typing import NamedTuple

import pandas as pd
import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.proposing.proposal import proposal_of
from recon.model.errors import SourceUnreadableError
from recon.steps.files.proposed_layouts import KINDS
from tests.recon.files.proposing.exports import (
    ACCOUNT,
    MERCHANT,
    SHAPES,
    made,
    true_value,
)
from tests.recon.files.whole_read import read_table

pytestmark = pytest.mark.xdist_group("proposals")
SEEDS = int(os.environ.get("PROPOSED_SEEDS", "1"))
"""Files of each shape; `make test-truths` plays more."""
RIGHT_SHARE_MIN = 0.95
CONSTANTS = {"merchant_id": MERCHANT, "account_id": ACCOUNT}


class Outcome(NamedTuple):
    """What became of one file."""

    right: int
    columns: int
    wrong: tuple[str, ...]
    """In silence."""
    asked: frozenset[str]
    rejects: tuple[str, ...]


def answers_of(export):
    """What somebody who knows the program would answer."""
    shape = export.shape
    answers = {f"columns.{ours}": their for ours, their in export.columns.items()}
    answers |= {f"words.{_worded(shape)}.{their}": ours for ours, their in shape.words.items()}
    answers |= {"zone": shape.zone, "units": "major", "decimal_sign": "."}
    for key, value in shape.layout.items():
        if isinstance(value, dict):
            answers |= {
                f"{key}.{name}": text if isinstance(text, str) else ",".join(text)
                for name, text in value.items()
            }
        else:
            answers[key] = str(value)
    if "constants.batch_id" in answers:
        answers["columns.batch_id"] = "constants"
    return answers


def _worded(shape):
    named = {pair.rpartition("=")[2] for pair in shape.columns.split("|")}
    return next(iter({"status", "entry_type", "kind"} & named), "")


def proposed(path, *, schema, answers):
    """The proposal for one file."""
    return proposal_of([read_bytes(path)], schema=schema, constants=CONSTANTS, answers=answers)


def outcome_of(export, folder):
    """A file proposed, asked about, read by the layout, and compared with what is true of it."""
    path = folder / export.name
    path.write_bytes(export.content)
    schema = KINDS[export.shape.kind].schema
    first = proposed(path, schema=schema, answers={})
    said = {name: first.layout.get("columns", {}).get(name, name) for name in export.columns}
    asked = frozenset(first.questions)
    right = sum(said[name] == their for name, their in export.columns.items())
    wrong = [
        f"{name} is {said[name]}"
        for name, their in export.columns.items()
        if said[name] not in {their, name} and f"columns.{name}" not in asked
    ]
    frame, rejects = _read(path, first, export=export, schema=schema)
    if frame is not None:
        wrong += _differences(frame, export=export)
    return Outcome(right, len(export.columns), tuple(wrong), asked, rejects)


def _read(path, first, *, export, schema):
    """What the layout reads once the questions are answered; None where one cannot be."""
    answers = answers_of(export)
    given: dict[str, str] = {}
    last = first
    while last.questions:
        new = {key: answers[key] for key in last.questions if key in answers}
        if not new or set(new) <= set(given):
            return None, tuple(last.questions)
        if new.get("columns.batch_id") == "constants":
            new = {"constants.batch_id": answers["constants.batch_id"], **new}
            del new["columns.batch_id"]
        given |= new
        last = proposed(path, schema=schema, answers=given)
    layout = FileLayout.model_validate(last.layout)
    kind = KINDS[export.shape.kind].schema.kind
    table = read_table(path, kind=kind, rules=Rules(), layout=layout, schema=schema)
    rejects = tuple(f"{reject.column}: {reject.reason}" for reject in table.rejects)
    return table.frame, rejects


def _differences(frame, *, export):
    """Rows that are read as something else than is true, by all their columns."""
    if len(frame) > len(export.rows):
        return ["more rows than there are"]
    wrong: Counter[str] = Counter()
    names = sorted({"entry_id", "request_id", "entry_no", "order_no"} & set(export.columns))
    truth = {str(row[names[0]]): row for row in export.rows}
    for values in frame.to_dict("records"):
        row = truth.get(str(values[names[0]]))
        if row is None:
            wrong["a row that does not exist"] += 1
            continue
        for ours in export.columns:
            if _plain(values[ours]) not in {_plain(true_value(row, ours)), ""}:
                wrong[f"{ours}: {_plain(values[ours])}, not {_plain(true_value(row, ours))}"] += 1
    return [f"{times} x {what}" for what, times in wrong.most_common(3)]


def _plain(value):
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1000)
    return int(value) if isinstance(value, int | float) else str(value)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of the files of a shape, each of which is proposed once."""
    folder = tmp_path_factory.mktemp("files")
    known: dict[str, list[Outcome]] = {}

    def of(shape):
        if shape.name not in known:
            known[shape.name] = [
                outcome_of(made(shape, seed=seed), folder) for seed in range(SEEDS)
            ]
        return known[shape.name]

    return of


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_column_of_a_shape_is_wrong_in_silence(shape, outcomes):
    for seed, outcome in enumerate(outcomes(shape)):
        assert not outcome.wrong, (seed, outcome)
        assert outcome.asked == shape.asked, (seed, outcome)
        assert not outcome.rejects, (seed, outcome)


def test_nearly_all_columns_are_right_at_once(outcomes):
    every = [outcome for shape in SHAPES for outcome in outcomes(shape)]
    assert len(every) == len(SHAPES) * SEEDS
    right, columns = sum(o.right for o in every), sum(o.columns for o in every)
    assert right >= RIGHT_SHARE_MIN * columns, f"{right} of {columns} of {len(every)} files"


def test_a_header_alone_is_no_sample_until_another_one_has_rows(tmp_path):
    """A column is known by its cells, too; asking for every one of them would help nobody."""
    header = "Order ID;Currency;Total;State;Created\n"
    row = "A-1;EUR;10.00;paid;2026-11-20T10:00:00Z\n"
    schema = KINDS["orders"].schema
    paths = [tmp_path / "bare.csv", tmp_path / "full.csv"]
    for path, text in zip(paths, (header, header + row), strict=True):
        path.write_text(text)
    with pytest.raises(SourceUnreadableError, match=r"^bare\.csv has a header and no row; "):
        proposed(paths[0], schema=schema, answers={})
    files = [read_bytes(path) for path in paths]
    both = proposal_of(files, schema=schema, constants=CONSTANTS, answers={})

    assert both.layout["columns"]["order_no"] == "Order ID"


SETTLED = "Batch ID;Type;Order ID;Transaction ID;Reference;Currency;Gross;Fee;Net"


@pytest.mark.parametrize(
    ("kind", "header", "row", "asked"),
    [
        ("orders", "Order ID;Currency;Total;State;Datum;Versand", "{n};EUR;10.00;paid;{a};{b}", 1),
        ("orders", "Order ID;Currency;Total;State;Placed at", "{n};EUR;10.00;paid;{a}", 0),
        (
            "ledger",
            "Entry;Order ID;Type;Currency;Amount;Date;Paid",
            "E{n};{n};fee;EUR;1.00;{a};{b}",
            1,
        ),
        ("settlement", f"{SETTLED};Value date;Settlement date UTC", "", 1),
        ("settlement", f"{SETTLED};Booking date;Ausgezahlt", "", 1),
        ("settlement", f"{SETTLED};Settlement date;Ausgezahlt", "", 0),
    ],
)
@pytest.mark.parametrize(
    ("first", "second"),
    [("03.11.2026", "05.11.2026"), ("2026-11-25", "2026-11-27"), ("20261125", "20261127")],
)
def test_of_two_days_the_one_that_is_meant_is_asked(
    kind, header, row, asked, first, second, tmp_path
):
    row = row or "B;capture;{n};t{n};R;EUR;10.00;0.00;10.00;{a};{b}"
    rows = [row.format(n=number, a=first, b=second) for number in range(3)]
    path = tmp_path / "two-days.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    questions = proposed(path, schema=KINDS[kind].schema, answers={}).questions
    days = {"columns.ordered_at", "columns.booked_at", "columns.settled_on"}
    assert len(days & set(questions)) == asked, questions


OF_LINE = "batch_id,settled_on,entry_type,order_no,transaction_id,reference_no,currency"
LINE = "B1,2026-11-18,{},A{},t{},r{},EUR,{}"


def amounts_of(path, answers):
    """Gross, fee and net of each row as the proposal reads them; what it asks, where it asks."""
    schema = KINDS["settlement"].schema
    last = proposed(path, schema=schema, answers=answers)
    if last.questions:
        return set(last.questions)
    layout = FileLayout.model_validate(last.layout)
    table = read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)
    assert table.rejects == ()
    return [
        [int(units) for units in row] for row in table.frame[["gross", "fee", "net"]].to_numpy()
    ]


TAX = "gross,Commission,VAT on fee,net"
BLIND = "capture|55.00,-1.00,-0.20,53.80 capture|10.00,-0.50,-0.10,9.40"
TURNED = "capture|55.00,1.00 refund|10.00,0.34"
WAYS, BOTH_WAYS = "gross,Way,fee,Fee way", "capture|55.00,CR,1.00,DR refund|10.00,DR,0.34,CR"
TWO_FEES, OF_REFUND = [[5500, 120, 5380], [1000, 60, 940]], [[5500, 100, 5400], [-1000, -34, -966]]
PAID = [*OF_REFUND, [2000, 50, 1950], [6384, 0, 6384]]


@pytest.mark.parametrize(
    ("header", "rows", "answers", "found"),
    [
        # Commission and its tax: the rows say that the fee is both.
        (TAX, "capture|55.00,1.00,0.20,53.80 capture|10.00,0.50,0.10,9.40", {}, TWO_FEES),
        # Of columns whose names say nothing a person says which they are.
        ("gross,A,B,net", "capture|55.00,1.00,0.20,53.80", {}, {"columns.fee"}),
        ("gross,A,B,net", BLIND, {"columns.fee": "A + B"}, TWO_FEES),
        # Parts of a fee by their names that do not come to it.
        ("gross,Commission,Markup,net", "capture|55.00,1.00,0.30,53.80", {}, {"columns.fee"}),
        # Another column of amounts may be the net.
        ("gross,fee,Payable", "capture|55.00,1.00,53.50", {}, {"columns.net"}),
        (
            *("gross,fee,Payable", "capture|55.00,1.00,53.50", {"net": "gross_less_fee"}),
            [[5500, 100, 5400]],
        ),
        (
            *("gross,fee,Payable", "capture|55.00,1.00,54.00", {"columns.net": "Payable"}),
            [[5500, 100, 5400]],
        ),
        # Without a net nothing says which way a fee goes that is minus.
        ("gross,fee", "capture|55.00,-1.00 capture|9.00,-0.10", {}, {"negated"}),
        ("gross,fee", "capture|55.00,-1.00", {"negated": "fee"}, [[5500, 100, 5400]]),
        ("gross,fee", "capture|55.00,-1.00", {"negated": ""}, [[5500, -100, 5600]]),
        # Nor of a refund that is plus.
        ("gross,fee", TURNED, {}, {"negated_rows.refund"}),
        ("gross,fee", TURNED, {"negated_rows.refund": "gross,fee"}, OF_REFUND),
        (
            *("gross,fee", TURNED, {"negated_rows.refund": "gross"}),
            [[5500, 100, 5400], [-1000, 34, -1034]],
        ),
        # The payout of its batch proves that refunds are the other way round.
        ("gross,fee", f"{TURNED} capture|20.00,0.50 payout|63.84,0.00", {}, PAID),
        # Columns of signs: of which amounts each is, and how fees are called.
        (WAYS, BOTH_WAYS, {"sign.gross": "Way"}, {"sign.fee"}),
        (WAYS, BOTH_WAYS, {"sign.gross": "Way", "sign.fee": "Fee way"}, {"negated"}),
        (
            *(WAYS, BOTH_WAYS, {"sign.gross": "Way", "sign.fee": "Fee way", "negated": "fee"}),
            OF_REFUND,
        ),
    ],
)
def test_what_proves_no_fee_and_no_net_is_asked(header, rows, answers, found, tmp_path):
    lines = [
        LINE.format(kind, number, number, number, cells)
        for number, (kind, _, cells) in enumerate(row.partition("|") for row in rows.split())
    ]
    path = tmp_path / "s.csv"
    path.write_text("\n".join([f"{OF_LINE},{header}", *lines]) + "\n")
    assert amounts_of(path, answers) == found


JAPANESE = {
    "columns.order_no": "注文番号",
    "columns.currency": "通貨",
    "columns.amount": "金額",
    "columns.status": "状態",
    "columns.ordered_at": "注文日",
    "words.status.支払済": "paid",
    "words.status.保留": "pending",
    "zone": "Asia/Tokyo",
}
RUSSIAN = {
    "columns.order_no": "Заказ",
    "columns.currency": "Валюта",
    "columns.amount": "Сумма",
    "columns.status": "Статус",
    "columns.ordered_at": "Дата",
    "words.status.оплачен": "paid",
    "words.status.ожидает": "pending",
    "zone": "Europe/Riga",
}


@pytest.mark.parametrize(
    ("said", "encoding", "codec"),
    [
        (JAPANESE, "", "utf-8"),
        (JAPANESE, "shift_jis", "cp932"),
        (RUSSIAN, "windows-1251", "cp1251"),
    ],
)
def test_a_header_in_another_script_is_read_where_its_columns_are_named(
    said, encoding, codec, tmp_path
):
    names = [text for key, text in said.items() if key.startswith("columns.")]
    paid, pending = (key.rpartition(".")[2] for key in said if key.startswith("words."))
    rows = [f"1001,JPY,1200,{paid},2026-11-18", f"1002,EUR,5.30,{pending},2026-11-18"]
    path = tmp_path / "orders.csv"
    path.write_bytes("\n".join(["Shop 1", ",".join(names), *rows, ""]).encode(codec))
    answers = said | ({"encoding": encoding} if encoding else {})
    schema = KINDS["orders"].schema
    found = proposed(path, schema=schema, answers=answers)
    assert found.questions == {}
    layout = FileLayout.model_validate(found.layout)
    table = read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)
    assert table.rejects == ()
    assert table.frame[["order_no", "amount", "status"]].to_numpy().tolist() == [
        ["1001", 1200, "paid"],
        ["1002", 530, "pending"],
    ]


def test_an_encoding_that_a_person_names_is_the_one_of_all_bytes(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_bytes(
        ",".join(v for k, v in JAPANESE.items() if k[:3] == "col").encode("cp932")[:-1]
    )
    with pytest.raises(SourceUnreadableError, match="is not shift_jis to its end"):
        proposed(path, schema=KINDS["orders"].schema, answers=JAPANESE | {"encoding": "shift_jis"})
