import hashlib
import json
import random
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recon.matching.breaks.result import (
    EFFECT_COLUMNS,
    JOURNAL_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.model.errors import (
    ConfigurationError,
    OutputError,
    ReconError,
    SourceMissingError,
    UsageError,
)
from recon.model.terms import Verdict
from recon.proof import engine
from recon.steps.compare import result_files
from recon.steps.compare.carried_files import read_earlier_run
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files
from reports.workbook_io import workbooks
from tests.proving import OneLine, failed, losing_a_break
from tests.recon.steps.compare.test_night_totals import verdict_by_hand

ORDERS = """\
merchant_id,account_id,order_no,currency,amount,status,ordered_at
100042,100042001,A1,EUR,10.00,paid,2026-11-05T10:00:00Z
100042,100042001,A2,EUR,11.00,paid,2026-11-05T10:00:00Z
100042,100042001,A3,JPY,1100,paid,2026-11-05T10:00:00Z
100042,100042001,A4,EUR,1.5,paid,2026-11-05T10:00:00Z
100042,100042001,A5,KWD,1.234,paid,2026-11-20T23:00:00Z
"""
GATEWAY = """\
merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,\
reference_no,transaction_date
100042,100042001,A1,T1,EUR,10.00,3000,1,R1,20261105100000
100042,100042001,A2,T2,EUR,12.00,3000,1,R2,20261105100000
100042,100042001,A3,,,,,2,,
"""
LEDGER = """\
entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at
E1,100042,100042001,A1,capture,EUR,10.00,2026-11-06T00:00:00Z
E2,100042,100042001,A2,capture,EUR,12.00,2026-11-06T00:00:00Z
"""
COLUMNS = {
    "breaks.csv": result_files.BREAKS_CSV,
    "effects.csv": EFFECT_COLUMNS,
    "journals.csv": JOURNAL_COLUMNS,
    "matches.csv": MATCH_COLUMNS,
    "pending.csv": PENDING_COLUMNS,
    "unverified.csv": UNVERIFIED_COLUMNS,
    "rejects.csv": ("source", "line", "column", "reason", "value"),
}
NOW = datetime(2026, 11, 21, 1, tzinfo=UTC)
BROKEN_DISK = OSError(28, "No space left on device")


def request(folder, **changes):
    """The files above, in a folder, and where their results go."""
    texts = {"orders": ORDERS, "gateway": GATEWAY, "ledger": LEDGER}
    for name, text in texts.items():
        path = folder / f"{name}.csv"
        if not path.exists():
            path.write_text(text)
    named: dict[str, object] = {name: (folder / f"{name}.csv",) for name in texts}
    named |= {"as_of": date(2026, 11, 20), "out": folder / "out"} | changes
    return PlainFilesRequest(**named)  # type: ignore[arg-type]  # changes are of its own fields


def run(asked, shown=None):
    """Reconcile with the real engine."""
    shown = shown or OneLine()
    return reconcile_files(
        asked, clock=lambda: NOW, write_workbook=shown.write, sheet_totals=shown.totals
    )


def test_a_run_that_loses_a_break_is_not_proven(tmp_path, monkeypatch):
    """SQL finds the order of it in the files, and no place for it in the result."""
    monkeypatch.setattr(engine, "reconcile", losing_a_break(engine.reconcile))
    result = run(request(tmp_path))
    assert result.verdict is Verdict.NOT_PROVEN
    assert {total.id for total in failed(result)} == {"T4"}


def test_the_folder_of_a_run_proves_itself_with_duckdb_alone(ran):
    """As the folder of a night does; a changed amount is told by its total."""
    folder = ran / "out" / "night"
    proven = verdict_by_hand(folder)
    orders = pq.read_table(folder / "inputs" / "orders.parquet")
    more = pc.add(orders["amount"], pa.scalar(1, pa.int64()))
    changed = orders.set_column(orders.schema.get_field_index("amount"), "amount", more)
    pq.write_table(changed, folder / "inputs" / "orders.parquet")
    lines, verdict = verdict_by_hand(folder)

    assert proven == ([], "PROVEN")
    assert verdict == "NOT PROVEN"
    assert {"T4", "T5A"} <= {line[0] for line in lines}


@pytest.mark.parametrize(
    ("rows", "amount"),
    [
        (["11.00,paid,2026-11-05T11:00Z", "12.00,paid,2026-11-05T12:00Z"], "12.00"),
        (["11.00,paid,2026-11-05T11:00Z", "11.00,paid,2026-11-05T12:00Z"], "11.00"),
        (
            [
                "11.00,paid,2026-11-05T12:00Z",
                "12.00,paid,2026-11-05T12:00Z",
                "99.00,paid,2026-11-05T11:00Z",
            ],
            "23.00",
        ),
    ],
    ids=["newer", "equal but for its instant", "older than two that conflict"],
)
def test_the_row_that_stands_is_the_one_that_stands_in_a_night(tmp_path, rows, amount):
    """The newest `updated_at` stands and equal content counts once: an older row joins nothing.

    Whether the rows come in one file or in several, and what became of each is a total.
    """
    head = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,updated_at"
    texts = [
        "100042,100042001,A2,EUR,{},{},2026-11-05T10:00:00Z,{}".format(*row.split(","))
        for row in rows
    ]
    shown = set()
    for number, files in enumerate([[texts], [texts[::-1]], [[text] for text in texts]]):
        paths = [tmp_path / f"{number}-{at}.csv" for at, _ in enumerate(files)]
        for path, lines in zip(paths, files, strict=True):
            path.write_text("\n".join([head, *lines, ""]))
        result = run(request(tmp_path, orders=tuple(paths), out=tmp_path / f"out{number}"))
        table = (tmp_path / f"out{number}" / "breaks.csv").read_text().splitlines()
        matches = (tmp_path / f"out{number}" / "matches.csv").read_text().splitlines()
        shown |= {line for line in table + matches if ",A2," in line}
        assert failed(result) == []
        assert {total.name for total in result.control_totals} >= {
            "orders: rows accepted, step by step = rows compared",
            f"{paths[0].name} stored: accepted = new + repeat + superseding",
        }
    (line,) = shown

    assert f",{amount},12.00,12.00," in line
    assert ("DUPLICATE_ORDER_ROW" in line) is (len(rows) > 2)


@pytest.mark.parametrize("is_true", [True, False])
def test_the_workbook_is_read_back_against_what_is_published(tmp_path, *, is_true):
    """A workbook that shows a break less makes the run NOT PROVEN by T13, in summary.json too."""
    made = workbooks()

    def drawn(figures, place):
        shown = figures.breaks if is_true else figures.breaks.iloc[1:]
        return made.write(replace(figures, breaks=shown), place)

    result = reconcile_files(
        request(tmp_path), clock=lambda: NOW, write_workbook=drawn, sheet_totals=made.totals
    )
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    unlike = {
        one["name"]: int(one["left"]) - int(one["right"])
        for one in told["control_totals"]
        if one["id"] == "T13" and not one["passed"] and not one["currency"]
    }
    left = sorted(path.name for path in (tmp_path / "out").iterdir())

    assert len(result.breaks) > 1
    assert told["verdict"] == result.verdict.value
    assert (result.verdict is Verdict.NOT_PROVEN) is not is_true
    assert unlike.get("sheet = database, break", 0) == (0 if is_true else -1)
    assert left == sorted([*COLUMNS, "night", "reconciliation.xlsx", "summary.json"])


def test_a_run_into_a_used_folder_reads_back_the_workbook_of_its_own(tmp_path):
    """The new workbook gets a name of its own, T13 reads that one, and the earlier one stays."""
    made = workbooks()
    read: list[str] = []

    def totals(path, **beside):
        read.append(path.name)
        return made.totals(path, **beside)

    def again():
        return reconcile_files(
            request(tmp_path), clock=lambda: NOW, write_workbook=made.write, sheet_totals=totals
        ).verdict

    first = again()
    kept = (tmp_path / "out" / "reconciliation.xlsx").read_bytes()
    (tmp_path / "orders.csv").write_text(ORDERS.replace("A2,EUR,11.00", "A2,EUR,12.00"))
    second = again()

    assert [first, second] == [Verdict.BREAKS_OPEN, Verdict.BREAKS_OPEN]
    assert read == ["reconciliation.xlsx", "reconciliation-v2.xlsx"]
    assert (tmp_path / "out" / "reconciliation.xlsx").read_bytes() == kept
    assert (tmp_path / "out" / "reconciliation-v2.xlsx").read_bytes() != kept


@pytest.mark.parametrize("is_equal", [True, False], ids=["equal", "other"])
def test_a_failing_read_back_removes_nothing_of_an_earlier_run(tmp_path, *, is_equal):
    """Only a workbook that this very run made is taken away, also where it equals an earlier one.

    The second workbook, which says what differs, stands beside it under a name of its own.
    """
    made = workbooks()
    run(request(tmp_path), made)
    before = (tmp_path / "out" / "reconciliation.xlsx").read_bytes()
    if not is_equal:
        (tmp_path / "orders.csv").write_text(ORDERS.replace("A2,EUR,11.00", "A2,EUR,13.00"))

    result = reconcile_files(
        request(tmp_path),
        clock=lambda: NOW,
        write_workbook=made.write,
        sheet_totals=lambda path, **_: {**made.totals(path), "break": (99, {})},
    )
    left = sorted(path.name for path in (tmp_path / "out").glob("*.xlsx"))

    assert result.verdict is Verdict.NOT_PROVEN
    assert left == ["reconciliation-v2.xlsx", "reconciliation.xlsx"]
    assert (tmp_path / "out" / "reconciliation.xlsx").read_bytes() == before


@pytest.fixture(scope="module")
def run_once(tmp_path_factory):
    """The files above and their results."""
    folder = tmp_path_factory.mktemp("plain")
    run(request(folder))
    return folder


@pytest.fixture
def ran(run_once, tmp_path):
    """A copy of them, to do with as a test likes."""
    shutil.copytree(run_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def contents(folder):
    """Every file of a folder."""
    return {path.name: path.read_text("latin-1") for path in folder.rglob("*.*")}


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_changes_no_byte(ran, seed):
    """Whatever the order of the rows of the inputs; only rejects name lines."""
    shuffled = ran / "shuffled"
    shuffled.mkdir()
    for name, text in (("orders", ORDERS), ("gateway", GATEWAY), ("ledger", LEDGER)):
        head, *rows = text.splitlines()
        random.Random(seed).shuffle(rows)
        (shuffled / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    run(request(shuffled))
    first, second = contents(ran / "out"), contents(shuffled / "out")
    for name in set(COLUMNS) - {"rejects.csv"}:
        assert first[name] == second[name], name


def test_the_figures_name_the_file_of_all_matches_as_it_is_published(tmp_path):
    """A large night's workbook names matches.csv by the SHA-256 that it has in its place."""
    shown = OneLine()
    run(request(tmp_path), shown)
    content = (tmp_path / "out" / "matches.csv").read_bytes()
    (figures,) = shown.figures

    file = figures.list_files["match"]
    assert file.name == "matches.csv"
    assert file.rows == figures.matches.count == content.count(b"\n") - 1 > 0
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.size_bytes == len(content)


def charged_back(out):
    """The orders that the run of a folder saw as charged back."""
    previous = read_earlier_run(out).previous
    return [*previous.chargebacks["order_no"]]


def test_chargebacks_of_an_earlier_run_are_remembered(tmp_path):
    """A set that was charged back is known as such, whether it matched or broke."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[payment_status]\n3000 = "paid"\n7000 = "chargeback"\n')
    (tmp_path / "gateway.csv").write_text(GATEWAY.replace("10.00,3000", "10.00,7000"))
    run(request(tmp_path, rules_file=rules))
    assert charged_back(tmp_path / "out") == ["A1"]


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"orders": (Path("a.csv"), Path("a.csv"))}, UsageError, "a.csv is named twice as orders"),
        ({"gateway": (Path("none.csv"),)}, SourceMissingError, "none.csv does not exist"),
        ({"rules_file": Path("none.toml")}, ConfigurationError, "does not exist"),
        ({"previous": Path("nowhere")}, SourceMissingError, "does not exist"),
    ],
)
def test_what_is_missing_is_told_and_nothing_is_written(tmp_path, changes, error, told):
    """A wrong call ends with exit code 2 and leaves no result."""
    with pytest.raises(error, match=told) as raised:
        run(request(tmp_path, **changes))
    assert raised.value.exit_code == 2  # type: ignore[attr-defined]  # all of recon's have one
    assert not (tmp_path / "out").exists() or contents(tmp_path / "out") == {}


def test_an_output_that_cannot_be_written_is_told_first(tmp_path):
    """Before a file is read: the inputs are not even there."""
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(OutputError, match="results cannot be written to"):
        run(request(tmp_path, out=place / "out", orders=(tmp_path / "none.csv",)))
    assert place.read_text() == "mine"


@pytest.mark.parametrize("failing", ["workbook", "text"])
def test_a_failure_keeps_the_files_of_an_earlier_run(ran, monkeypatch, failing):
    """All results take their places together, or none does; nothing half-written stays."""
    before = contents(ran / "out")
    (ran / "orders.csv").write_text(ORDERS.replace("A1", "B1"))

    def broken(*_):
        raise BROKEN_DISK

    def broken_rows(*_, **__):
        yield b"half a file"
        raise BROKEN_DISK

    if failing == "text":
        monkeypatch.setattr(result_files, "csv_chunks", broken_rows)
    with pytest.raises(OutputError, match="No space left on device"):
        reconcile_files(request(ran), clock=lambda: NOW, write_workbook=broken, sheet_totals=broken)
    assert contents(ran / "out") == before


PAID = {
    "orders": (
        "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
        "M1,A1,O-1,EUR,10.00,paid,2026-11-10T10:00:00Z\n"
    ),
    "gateway": (
        "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
        "query_result,reference_no,transaction_date\n"
        "M1,A1,O-1,T1,EUR,10.00,3000,1,,2026-11-10T10:00:00Z\n"
    ),
    "ledger": (
        "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
        "transaction_id,reference_no\n"
        "E1,M1,A1,O-1,capture,EUR,10.00,2026-11-10T10:00:00Z,T1,\n"
        "E2,M1,A1,,payout,EUR,10.00,2026-11-12T10:00:00Z,,BATCH-1\n"
    ),
    "settlement": (
        "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,"
        "reference_no,currency,gross,fee,net\n"
        "BATCH-1,M1,A1,2026-11-12,capture,O-1,T1,,EUR,10.00,0.00,10.00\n"
        "BATCH-1,M1,A1,2026-11-12,payout,,,,EUR,10.00,0.00,10.00\n"
    ),
}


@pytest.mark.parametrize("unread", [True, False])
def test_a_line_that_nobody_could_read_is_not_forgotten_the_next_day(tmp_path, *, unread):
    """The only line of its batch: no set names it, and the run is not RECONCILED for all that."""
    more = "NEWB,M1,A1,2026-11-12,capture,O-9,T9,,EUR,bad,0.00,10.00\n" if unread else ""
    for name, text in PAID.items():
        (tmp_path / f"{name}.csv").write_text(text + more * (name == "settlement"))
    settlement, second = (tmp_path / "settlement.csv",), tmp_path / "second"
    run(request(tmp_path, settlement=settlement))
    asked = request(tmp_path, previous=tmp_path / "out", out=second)
    shown = OneLine()
    result = run(asked, shown)

    assert result.verdict is (Verdict.BREAKS_OPEN if unread else Verdict.RECONCILED)
    assert any("NEWB" in each for each in shown.figures[0].notes) is unread


def test_a_run_that_ends_while_its_files_get_their_names_is_no_run_before_another(
    tmp_path, monkeypatch
):
    """Wherever it ends, the next run reads one whole run, or says that it cannot."""
    run(request(tmp_path))
    (tmp_path / "orders.csv").write_text(ORDERS.replace("10.00", "11.00"))
    whole, names = Path.replace, list[str]()

    def ending(path, target):
        if target.parent == tmp_path / "out":
            if names:
                raise BROKEN_DISK
            names.append(path.name)
        return whole(path, target)

    monkeypatch.setattr(Path, "replace", ending)
    with pytest.raises(OutputError):
        run(request(tmp_path))
    monkeypatch.setattr(Path, "replace", whole)

    assert names == ["night"]
    with pytest.raises(ReconError):
        run(request(tmp_path, previous=tmp_path / "out", out=tmp_path / "next"))
