import hashlib
import json
import random
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from recon.cli.workbooks import workbooks
from recon.matching.breaks.result import (
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    JOURNAL_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
    Reconciliation,
)
from recon.matching.frames.sources import frame_of
from recon.matching.judging.severity import risk_of_break
from recon.model.errors import (
    ConfigurationError,
    Defect,
    OutputError,
    SourceMissingError,
    SourceUnreadableError,
    UsageError,
)
from recon.model.figures import BATCH_COLUMNS, INSTRUCTION_SHEET_COLUMNS, NightFigures
from recon.model.words import GRAVE, Verdict
from recon.proof.engine import reconcile
from recon.steps.compare import plain_files, result_files
from recon.steps.compare.earlier_run import read_earlier_run
from recon.steps.compare.plain_figures import SEVERAL
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files
from recon.steps.compare.sheets_proven import SheetTotals
from recon.steps.ground.csv_columns import csv_of

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
INSTRUCTIONS = """\
instruction_id,merchant_id,account_id,order_no,transaction_id,kind,currency,amount,state,sent_at
I1,100042,100042001,A1,T1,refund,EUR,5.00,in_doubt,2026-11-19T10:00:00Z
"""
COLUMNS = {
    "breaks.csv": BREAK_COLUMNS,
    "effects.csv": EFFECT_COLUMNS,
    "journals.csv": JOURNAL_COLUMNS,
    "matches.csv": MATCH_COLUMNS,
    "pending.csv": PENDING_COLUMNS,
    "unverified.csv": UNVERIFIED_COLUMNS,
    "rejects.csv": ("source", "line", "column", "reason", "value"),
}
NOW = datetime(2026, 11, 21, 1, tzinfo=UTC)
BROKEN_DISK = OSError(28, "No space left on device")


def request(folder: Path, **changes: object) -> PlainFilesRequest:
    """The files above, in a folder, and where their results go."""
    texts = {"orders": ORDERS, "gateway": GATEWAY, "ledger": LEDGER}
    for name, text in texts.items():
        path = folder / f"{name}.csv"
        if not path.exists():
            path.write_text(text)
    named: dict[str, object] = {name: (folder / f"{name}.csv",) for name in texts}
    named |= {"as_of": date(2026, 11, 20), "out": folder / "out"} | changes
    return PlainFilesRequest(**named)  # type: ignore[arg-type]  # changes are of its own fields


def write_nothing(figures: NightFigures, place: Path) -> Path:
    """A workbook of one line."""
    place.write_text(figures.verdict)
    return place


def run(asked: PlainFilesRequest) -> Reconciliation:
    """Reconcile with the real engine."""
    return reconcile_files(asked, clock=lambda: NOW, write_workbook=write_nothing)


@pytest.mark.parametrize("is_true", [True, False])
def test_the_workbook_is_read_back_against_what_is_published(
    tmp_path: Path, *, is_true: bool
) -> None:
    """A workbook that shows a break less makes the run NOT PROVEN by T13, in summary.json too."""
    made = workbooks()

    def drawn(figures: NightFigures, place: Path) -> Path:
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
    assert left == sorted([*COLUMNS, "reconciliation.xlsx", "summary.json"])


def test_more_matches_than_a_sheet_takes_are_read_back_from_their_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """matches.csv has no name yet while the workbook that names it is held against it."""
    plain = plain_files.plain_figures

    def long(*args: Any, **named: Any) -> NightFigures:
        return replace(plain(*args, **named), matched_rows_max=0, matched_rows_shown=1)

    monkeypatch.setattr(plain_files, "plain_figures", long)
    made = workbooks()

    result = reconcile_files(
        request(tmp_path), clock=lambda: NOW, write_workbook=made.write, sheet_totals=made.totals
    )

    assert len(result.matches) > 0
    assert {one.id for one in result.control_totals if not one.passed} == set()
    assert (tmp_path / "out" / "matches.csv").read_bytes().count(b"\n") == len(result.matches) + 1


def test_a_run_into_a_used_folder_reads_back_the_workbook_of_its_own(tmp_path: Path) -> None:
    """The new workbook gets a name of its own, T13 reads that one, and the earlier one stays."""
    made = workbooks()
    read: list[str] = []

    def totals(path: Path, **beside: Any) -> SheetTotals:
        read.append(path.name)
        return made.totals(path, **beside)

    def again() -> Verdict:
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
def test_a_failing_read_back_removes_nothing_of_an_earlier_run(
    tmp_path: Path, *, is_equal: bool
) -> None:
    """Only a workbook that this very run made is taken away, also where it equals an earlier one.

    The second workbook, which says what differs, stands beside it under a name of its own.
    """
    made = workbooks()
    reconcile_files(request(tmp_path), clock=lambda: NOW, write_workbook=made.write)
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
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files above and their results."""
    folder = tmp_path_factory.mktemp("plain")
    run(request(folder))
    return folder


@pytest.fixture
def ran(run_once: Path, tmp_path: Path) -> Path:
    """A copy of them, to do with as a test likes."""
    shutil.copytree(run_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    """Every file of a folder."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_every_file_of_the_contract_is_written_with_its_columns(tmp_path: Path) -> None:
    """Seven text files and the workbook, columns as the contract lists them, nothing else left."""
    result = run(request(tmp_path))
    written = contents(tmp_path / "out")
    assert result.verdict is Verdict.BREAKS_OPEN
    assert set(written) == {*COLUMNS, "summary.json", "reconciliation.xlsx"}
    for name, columns in COLUMNS.items():
        assert written[name].splitlines()[0] == ",".join(columns), name
    assert "\r" not in "".join(written.values())


def test_amounts_have_the_decimals_of_their_currency(ran: Path) -> None:
    """Two for EUR, none for JPY, three for KWD; a leading minus; blank where a side is absent."""
    breaks = (ran / "out/breaks.csv").read_text()
    effects = (ran / "out/effects.csv").read_text()
    pending = (ran / "out/pending.csv").read_text()
    assert ",paid,paid,EUR,11.00,12.00,12.00,1.00,0.00," in breaks
    assert ",paid,none,JPY,1100,," in breaks
    assert ",orders,JPY,-1100\n" in effects
    assert ",paid,none,KWD,1.234,,,-1.234," in pending
    assert "2026-11-21T23:00:00Z" in pending


def test_rejects_stand_beside_with_line_and_reason(ran: Path) -> None:
    """What could not be read is listed, and its set is not verified."""
    written = contents(ran / "out")
    assert "orders.csv,5,amount," in written["rejects.csv"]
    assert ",A4,,,,none,none,,,,,,,ROW_QUARANTINED\n" in written["unverified.csv"]


def test_the_summary_has_every_key_of_the_contract(ran: Path) -> None:
    """Verdict, totals, codes, inputs with their hashes; amounts as text, never a fraction."""
    text = (ran / "out/summary.json").read_text()
    told = json.loads(text, parse_float=pytest.fail)
    for key in ("verdict", "as_of", "scope_of_assurance", "unmapped_codes", "not_covered"):
        assert key in told
    assert told["verdict"] == "BREAKS OPEN"
    assert told["as_of"] == "2026-11-21T00:00:00Z"
    assert told["breaks_by_code"] == {"AMOUNT_OVER": 1, "MISSING_AT_GATEWAY": 1}
    hashes = {each["source"]: each["sha256"] for each in told["inputs"]}
    assert hashes["orders"] == hashlib.sha256(ORDERS.encode()).hexdigest()
    amounts = [total for total in told["control_totals"] if total["measure"] == "amount"]
    assert amounts
    assert all(isinstance(total["left"], str) for total in amounts)
    assert {"id", "name", "currency", "left", "right", "difference", "passed"} <= set(amounts[0])
    sides = {(s["source"], s["currency"], s["state"]): s for s in told["sources"]}
    assert sides["orders", "EUR", "MATCHED"]["amount"] == "10.00"
    assert len(told["rules_digest"]) == 64


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_changes_no_byte(ran: Path, seed: int) -> None:
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


def test_files_of_one_kind_may_come_in_parts(ran: Path) -> None:
    """Two files of orders are one table; the same file twice is a mistake."""
    head, *rows = ORDERS.splitlines(keepends=True)
    parts = (ran / "o1.csv", ran / "o2.csv")
    parts[0].write_text(head + "".join(rows[:2]))
    parts[1].write_text(head + "".join(rows[2:]))
    run(request(ran, orders=parts, out=ran / "parts"))
    whole, of_parts = contents(ran / "out"), contents(ran / "parts")
    assert of_parts["breaks.csv"] == whole["breaks.csv"]
    assert of_parts["matches.csv"] == whole["matches.csv"]
    with pytest.raises(UsageError, match="is named twice as orders"):
        run(request(ran, orders=(parts[0], parts[0])))


def test_the_figures_name_the_file_of_all_matches_as_it_is_published(tmp_path: Path) -> None:
    """A large night's workbook names matches.csv by the SHA-256 that it has in its place."""
    seen: list[NightFigures] = []

    def drawn(figures: NightFigures, place: Path) -> Path:
        seen.append(figures)
        return place

    reconcile_files(request(tmp_path), clock=lambda: NOW, write_workbook=drawn)
    content = (tmp_path / "out" / "matches.csv").read_bytes()
    (figures,) = seen

    file = figures.list_files["match"]
    assert file.name == "matches.csv"
    assert file.rows == figures.matches.count == content.count(b"\n") - 1 > 0
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.size_bytes == len(content)


def test_without_a_ledger_the_verdict_is_incomplete(tmp_path: Path) -> None:
    """Leg B is then not covered, and says so."""
    result = run(request(tmp_path, ledger=()))
    assert result.verdict is Verdict.INCOMPLETE
    assert result.not_covered


def test_an_earlier_run_gives_breaks_their_first_day(ran: Path) -> None:
    """The second night keeps ids and first days, and rolls forward."""
    second = request(ran, previous=ran / "out", as_of=date(2026, 11, 23), out=ran / "second")
    result = run(second)
    assert set(result.breaks["first_seen"]) == {"2026-11-20", "2026-11-23"}
    assert "T7" in {total.id for total in result.control_totals}
    again = read_earlier_run(ran / "second")
    assert again.breaks["exposure"].tolist() == result.breaks["exposure"].tolist()
    assert again.as_of == result.as_of


def test_chargebacks_of_an_earlier_run_are_remembered(tmp_path: Path) -> None:
    """A set that was charged back is known as such, whether it matched or broke."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[payment_status]\n3000 = "paid"\n7000 = "chargeback"\n')
    (tmp_path / "gateway.csv").write_text(GATEWAY.replace("10.00,3000", "10.00,7000"))
    run(request(tmp_path, rules_file=rules))
    assert read_earlier_run(tmp_path / "out").chargebacks["order_no"].tolist() == ["A1"]


@pytest.mark.parametrize(
    ("name", "text", "error", "told"),
    [
        ("summary.json", None, SourceMissingError, "does not exist"),
        ("breaks.csv", None, SourceMissingError, "does not exist"),
        ("summary.json", "{}", SourceUnreadableError, "not the summary of a run"),
        ("breaks.csv", "a,b\n1,2\n", SourceUnreadableError, "lacks break_id"),
        ("matches.csv", "a,b\n", SourceUnreadableError, "lacks merchant_id"),
    ],
)
def test_an_earlier_folder_must_be_whole(
    ran: Path, name: str, text: str | None, error: type[Exception], told: str
) -> None:
    """A folder that lacks a file, or holds another, is no earlier run."""
    path = ran / "out" / name
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(error, match=told):
        run(request(ran, previous=ran / "out", out=ran / "second"))


def test_an_edited_break_list_is_refused(ran: Path) -> None:
    """Ages and amounts of an earlier run are read as strictly as everything else."""
    path = ran / "out/breaks.csv"
    text = path.read_text()
    path.write_text(text.replace(",11.00,", ",11.5,"))
    with pytest.raises(SourceUnreadableError, match=r"order_amount: '11\.5'"):
        read_earlier_run(ran / "out")
    head, *rows = text.splitlines()
    cells = rows[0].split(",")
    cells[BREAK_COLUMNS.index("age_days")] = "old"
    path.write_text("\n".join([head, ",".join(cells)]) + "\n")
    with pytest.raises(SourceUnreadableError, match="age_days is 'old'"):
        read_earlier_run(ran / "out")
    with pytest.raises(SourceMissingError, match=r"earlier run .* does not exist"):
        read_earlier_run(ran / "nowhere")


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"orders": ()}, UsageError, "name at least one file of orders"),
        ({"gateway": ()}, UsageError, "name at least one file of gateway"),
        ({"gateway": (Path("none.csv"),)}, SourceMissingError, "none.csv does not exist"),
        ({"rules_file": Path("none.toml")}, ConfigurationError, "does not exist"),
        ({"previous": Path("nowhere")}, SourceMissingError, "does not exist"),
    ],
)
def test_what_is_missing_is_told_and_nothing_is_written(
    tmp_path: Path, changes: dict[str, object], error: type[Exception], told: str
) -> None:
    """A wrong call ends with exit code 2 and leaves no result."""
    with pytest.raises(error, match=told) as raised:
        run(request(tmp_path, **changes))
    assert raised.value.exit_code == 2  # type: ignore[attr-defined]  # all of recon's have one
    assert not (tmp_path / "out").exists() or contents(tmp_path / "out") == {}


def test_an_output_that_cannot_be_written_is_told_first(tmp_path: Path) -> None:
    """Before a file is read: the inputs are not even there."""
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(OutputError, match="results cannot be written to"):
        run(request(tmp_path, out=place / "out", orders=(tmp_path / "none.csv",)))
    assert place.read_text() == "mine"


@pytest.mark.parametrize("failing", ["workbook", "text"])
def test_a_failure_keeps_the_files_of_an_earlier_run(
    ran: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """All results take their places together, or none does; nothing half-written stays."""
    before = contents(ran / "out")
    (ran / "orders.csv").write_text(ORDERS.replace("A1", "B1"))

    def broken(*_: object) -> Path:
        raise BROKEN_DISK

    def broken_stage(folder: Path, name: str, *, content: str) -> Path:
        path = folder / f"{result_files._STAGED}x-{name}"
        if name == "summary.json":
            raise BROKEN_DISK
        del content
        return path

    if failing == "text":
        monkeypatch.setattr(result_files, "_stage", broken_stage)
        monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(OutputError, match="No space left on device"):
        reconcile_files(request(ran), clock=lambda: NOW, write_workbook=broken)
    assert contents(ran / "out") == before


def test_the_figures_show_the_instructions_in_doubt(tmp_path: Path) -> None:
    """What may or may not have moved stands on page one, with its amount and its day."""
    path = tmp_path / "instructions.csv"
    path.write_text(INSTRUCTIONS)
    shown: list[NightFigures] = []

    def look(figures: NightFigures, place: Path) -> Path:
        shown.append(figures)
        return place

    reconcile_files(request(tmp_path, instructions=(path,)), clock=lambda: NOW, write_workbook=look)
    (figures,) = shown
    doubt = figures.attention[0]
    assert (doubt.what, doubt.order_no, doubt.amount) == ("refund in doubt", "A1", 500)
    assert doubt.since == datetime(2026, 11, 19, 10, tzinfo=UTC)
    assert tuple(figures.instructions.columns) == INSTRUCTION_SHEET_COLUMNS
    assert tuple(figures.batches.columns) == BATCH_COLUMNS
    assert (figures.merchant_id, figures.account_id) == ("100042", "100042001")
    assert (figures.generated_at, figures.opening_breaks) == (NOW, None)


def test_the_figures_name_each_grave_break_as_those_of_a_night_do(tmp_path: Path) -> None:
    """What is high or critical needs a person, with its money at risk and a day to answer by."""
    rules = tmp_path / "rules.toml"
    rules.write_text("".join(f"[severity.{name}]\nhigh = 1\n" for name in ("EUR", "JPY", "KWD")))
    shown: list[NightFigures] = []

    def look(figures: NightFigures, place: Path) -> Path:
        shown.append(figures)
        return place

    asked = request(tmp_path, rules_file=rules)
    result = reconcile_files(asked, clock=lambda: NOW, write_workbook=look)

    grave = result.breaks[result.breaks["severity"].isin(GRAVE)]
    assert len(grave) > 0
    (figures,) = shown
    assert {(entry.code, entry.order_no, entry.amount) for entry in figures.attention} == {
        (row["code"], row["order_no"], risk_of_break(row)) for row in grave.to_dict("records")
    }
    assert all(entry.due is not None and entry.is_urgent for entry in figures.attention)


def test_an_instruction_of_a_key_that_no_record_has_is_a_break_with_its_money(
    tmp_path: Path,
) -> None:
    """Only our journal knows the order: the break stands in the instruction's own currency."""
    path = tmp_path / "instructions.csv"
    path.write_text(INSTRUCTIONS.replace("A1,T1", "Z9,TZ"))

    run(request(tmp_path, instructions=(path,)))

    (told,) = [
        line for line in contents(tmp_path / "out")["breaks.csv"].splitlines() if "Z9" in line
    ]
    assert "REFUND_UNCONFIRMED" in told
    assert ",EUR," in told
    assert ",5.00," in told


def test_an_instruction_in_two_files_is_one(tmp_path: Path) -> None:
    """The same row in two files of the journal is one move, in the figures as in the breaks."""
    paths = (tmp_path / "one.csv", tmp_path / "two.csv")
    for path in paths:
        path.write_text(INSTRUCTIONS)
    shown: list[NightFigures] = []

    def look(figures: NightFigures, place: Path) -> Path:
        shown.append(figures)
        return place

    reconcile_files(request(tmp_path, instructions=paths), clock=lambda: NOW, write_workbook=look)

    doubts = [entry for entry in shown[0].attention if not entry.code]
    assert [doubt.amount for doubt in doubts] == [500]
    assert len(shown[0].instructions) == 1


def test_several_accounts_are_shown_as_several(tmp_path: Path) -> None:
    """A workbook of more than one account names none of them in its title."""
    (tmp_path / "orders.csv").write_text(ORDERS.replace("100042001,A2", "100042002,A2"))
    (tmp_path / "orders2.csv").write_text(ORDERS.splitlines()[0] + ",Colour\n")
    shown: list[NightFigures] = []

    def look(figures: NightFigures, place: Path) -> Path:
        shown.append(figures)
        return place

    both = (tmp_path / "orders.csv", tmp_path / "orders2.csv")
    asked = request(tmp_path, orders=both)
    reconcile_files(asked, clock=lambda: NOW, write_workbook=look, reconcile=reconcile)
    assert (shown[0].merchant_id, shown[0].account_id) == ("100042", SEVERAL)
    assert shown[0].notes == ("orders2.csv: nothing was read from the unknown columns Colour.",)


def test_money_without_a_currency_is_a_defect() -> None:
    """An amount of no currency cannot be written; zero of none is a blank."""
    row: dict[str, object] = dict.fromkeys(EFFECT_COLUMNS, "")
    kinds = {name: "Int64" if name == "amount" else "str" for name in EFFECT_COLUMNS}
    assert csv_of(frame_of([{**row, "amount": 0}], columns=kinds), columns=EFFECT_COLUMNS).endswith(
        ",,,,,\n"
    )
    with pytest.raises(Defect, match="has no currency"):
        csv_of(frame_of([{**row, "amount": 5}], columns=kinds), columns=EFFECT_COLUMNS)
