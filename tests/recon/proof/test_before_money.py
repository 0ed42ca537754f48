from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.proof import totals_in_sql
from recon.proof.night_tables import table_of_rows
from recon.proof.totals_in_sql import BEFORE_MONEY, JOURNAL, totals_before_money
from tests.recon.proof.night_folders import PLACE, doubled, first_off, without_first

ACCOUNT = dict(zip(("merchant_id", "account_id"), PLACE, strict=True))
KEYS = [{**ACCOUNT, "order_no": f"A-{number}"} for number in range(3)]


def moved(kind, amount, *, transaction_id="T1"):
    named = {"transaction_id": transaction_id, "kind": kind}
    return {**named, "amount": amount, "payment_amount": 1_000}


def written(folder, *, journal, **changes):
    """What is asked before money: a file of 5 rows, 3 accepted, 1 refused, 1 skipped; 3 answers."""
    read = SourceFile(SourceKind.ORDERS, "o.csv", "sha", 9, 5, 3, 1, 1)
    reject = Reject(SourceKind.ORDERS, "o.csv", 4, "amount", "x", "no amount", *PLACE, "A-9")
    counts = {"accepted": 3, "new": 2, "repeat": 1}
    steps = [
        {"way": "stored", "source": "o.csv (1)", "step": step, "currency": "", "number": number}
        for step, number in counts.items()
    ]

    def rows_of(name, row):
        names = SCHEMAS[name].columns.names
        cells = {each: getattr(row, each) for each in names}
        return table_of_rows([{**cells, "kind": "orders"}], name=name)

    tables = {
        "inputs/files.parquet": rows_of("files", read),
        "inputs/rejects.parquet": rows_of("rejects", reject),
        "inputs/universe.parquet": table_of_rows(KEYS, name="universe"),
        "inputs/answers.parquet": pa.Table.from_pylist(KEYS),
        "inputs/steps.parquet": table_of_rows(steps, name="steps"),
        JOURNAL: pa.Table.from_pylist(journal, schema=pa.Table.from_pylist([moved("", 0)]).schema),
    }
    for path, table in tables.items():
        change = changes.get(Path(path).stem, lambda whole: whole)
        (folder / path).parent.mkdir(exist_ok=True)
        pq.write_table(change(table), folder / path)
    return folder


def failed(folder):
    totals = totals_before_money(folder, account=PLACE)
    assert {total.id for total in totals} == {"T0", "T1", "T2", "T3", "T9"}
    return {total.id for total in totals if not total.passed}


@pytest.mark.parametrize(
    ("file", "change", "red"),
    [
        ("files", lambda table: table, set()),
        *(("files", first_off(name), {"T0", "T1"}) for name in ("rows_read", "rows_skipped")),
        ("files", first_off("rows_rejected"), {"T1"}),
        *(("rejects", change, {"T0"}) for change in (without_first, doubled)),
        *(("steps", change, {"T2"}) for change in (first_off("number"), without_first, doubled)),
        *(("universe", change, {"T3"}) for change in (without_first,)),
        ("answers", without_first, {"T3"}),
    ],
)
def test_a_row_less_or_more_before_money_is_seen(file, change, red, tmp_path):
    assert failed(written(tmp_path, journal=[], **{file: change})) == red


CAPTURE, REFUND = "capture", "refund"


@pytest.mark.parametrize(
    ("journal", "red"),
    [
        ([moved(REFUND, 700), moved(REFUND, 300)], set()),
        ([moved(REFUND, 700), moved(REFUND, 700)], {"T9"}),
        ([moved(CAPTURE, 600), moved(CAPTURE, 600)], {"T9"}),
        ([moved(CAPTURE, 600), moved(CAPTURE, 600, transaction_id="T2")], set()),
        ([moved(CAPTURE, 600), moved(REFUND, 600)], set()),
        ([moved(CAPTURE, 600), moved(REFUND, 601)], {"T9"}),
    ],
)
def test_money_beyond_what_a_payment_holds_fails_t9(journal, red, tmp_path):
    """Captures go up to the payment, refunds up to what was captured of it; by us, or by others."""
    assert failed(written(tmp_path, journal=journal)) == red


@pytest.mark.parametrize("name", BEFORE_MONEY)
def test_a_proof_that_died_before_money_is_one_total_that_fails(killed_at, name, tmp_path):
    killed = killed_at(totals_in_sql._text(name).partition("\n")[0])
    (total,) = totals_before_money(written(tmp_path, journal=[]), account=PLACE)

    assert len(killed) == 1
    assert not total.passed
    assert f"{name}: the process that asks DuckDB ended (SIGKILL); nothing was sent" in total.name
