"""SQL over a night's files comes to its figures, and each engine finds the other's errors."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from recon.matching.frames.sources import AgreedWriteOffs, LoadCounts
from recon.model.words import ControlTotal, SourceKind
from recon.proof import second_engine, totals_of_items
from recon.proof.books_bridge import KNOWN_BEFORE
from recon.proof.proven import prove
from recon.proof.second_engine import (
    OF_SHEETS,
    key_of,
    night_memory_mb,
    proven_in_sql,
    second_proof,
    sql_files,
    sql_totals,
)
from recon.proof.sql_session import SqlError, reading
from recon.proof.verdict import Proof
from tests.planted.planted_files import planted
from tests.recon.matching.conftest import AS_OF
from tests.recon.proof.night_folders import PLACE, Night, changed, night_of, statements_of, written
from tests.recon.proof.test_control_totals import file_with, many, settled

pytestmark = pytest.mark.xdist_group("second engine")
"""They share what takes longer to make than to look at."""

TOTALS = sorted({name for name in sql_files(banks=False) if name[0] == "T"} - {OF_SHEETS})


@pytest.fixture(scope="module")
def whole(make_case: Callable[[], Any]) -> Proof:
    """A second night with all that any total is stated over: files, store, journals, payouts."""
    case = many(make_case())
    earlier = case.order(order_no="W").payment(order_no="W", amount=9800, transaction_id="TW")
    first = earlier.entry(order_no="W", amount=9800).run()
    settled(case.entry("write_off", order_no="W", amount=200)).after(first)
    rows = len(case.sources().orders)
    told = replace(
        case.sources(),
        merged_rows={"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)},
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: rows - 1}},
        agreed_write_offs=AgreedWriteOffs(
            dict.fromkeys(first.breaks["break_id"], ("EUR", 200)), {}
        ),
    )
    return file_with(prove(told, rules=case.rules, as_of=case.as_of, previous=case.previous))


@pytest.fixture(scope="module")
def night(whole: Proof) -> Night:
    """It, as it would be sealed."""
    return night_of(whole, as_of=AS_OF, is_carried=True)


@pytest.fixture(scope="module")
def folder(night: Night, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    return written(tmp_path_factory.mktemp("night"), tables=night.tables)


@pytest.fixture(scope="module")
def by_sql(folder: Path) -> tuple[ControlTotal, ...]:
    """What SQL says of it."""
    return sql_totals(folder)


def unlike(totals: Any, by_sql: Any) -> set[tuple[str, str]]:
    """Number and name of the totals that are held not to agree."""
    figures, *named = second_proof(totals, by_sql=by_sql, account=PLACE)
    assert figures.passed == (not named)
    return {(one.id, one.name.split(": left = ")[0].split(": right = ")[0]) for one in named}


def test_sql_comes_to_the_figures_of_the_night(
    night: Night, by_sql: tuple[ControlTotal, ...]
) -> None:
    """Every figure of every total is the same by SQL, and there is one of each of its files."""
    assert unlike(night.totals, by_sql) == set()
    figures = second_proof(night.totals, by_sql=by_sql, account=PLACE)[0]
    assert figures.left > len(night.totals) - 10
    stated = {(one.id, one.name) for one in night.totals}
    assert stated <= {(one.id, one.name) for one in by_sql}


def test_files_are_read_wherever_their_folder_lies(night: Night, tmp_path: Path) -> None:
    """Whatever marks of SQL stand in the name of a place."""
    folder = written(tmp_path / """the "third" night's""", tables=night.tables)

    assert unlike(night.totals, sql_totals(folder)) == set()


def charged_by_a_line(case: Any) -> Night:
    """A chargeback that the settlement and the books have, and the query does not show."""
    case.order().payment().entry().entry("chargeback", amount=4000)
    case.line().line("chargeback", gross=-4000)
    case.order(order_no="R").payment(order_no="R", transaction_id="TR").entry(order_no="R")
    proof = prove(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)
    return night_of(proof, as_of=AS_OF)


def test_sql_takes_a_chargeback_of_the_settlement_for_proven(case: Any, tmp_path: Path) -> None:
    """What the books have more of it is explained by the lines, in both engines."""
    night = charged_by_a_line(case)

    by_sql = sql_totals(written(tmp_path, tables=night.tables))

    assert night.tables["matches"].to_pydict()["flags"][0] == "chargeback_booked"
    assert unlike(night.totals, by_sql) == set()
    assert all(one.passed for one in night.totals)


@pytest.mark.parametrize("way", ["pandas", "SQL"])
def test_an_engine_that_takes_no_line_for_evidence_is_found(
    case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """T5A: of the match something is left that one of the two does not explain."""
    if way == "pandas":
        monkeypatch.setattr(totals_of_items, "_by_lines", lambda at, **_: at["money"] * 0)
    night = charged_by_a_line(case)
    folder = written(tmp_path, tables=night.tables)
    read = second_engine._text
    assert "- by_lines" in read("rows.sql")

    def without(name: str) -> str:
        return read(name).replace("- by_lines", "")

    if way == "SQL":
        monkeypatch.setattr(second_engine, "_text", without)

    assert {id_ for id_, _ in unlike(night.totals, sql_totals(folder))} == {"T5A"}


@pytest.mark.parametrize("state", ["rejected", "in_doubt"])
def test_a_refund_of_nothing_needs_no_verdict(case: Any, tmp_path: Path, state: str) -> None:
    """T8: it asked for no money, and stands alone; a cancellation of 0.00 is judged."""
    case.ledger().move("refund", state, order_no="R", amount=0)
    case.move("cancel", state, order_no="C", amount=0)
    proof = prove(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)
    night = night_of(proof, as_of=AS_OF)

    by_sql = sql_totals(written(tmp_path, tables=night.tables))

    assert [one for one in (*night.totals, *by_sql) if not one.passed] == []
    judged = {one.left for one in by_sql if one.name.startswith("rejected + in doubt =")}
    assert judged == {0, 1}


def test_sql_comes_to_the_figures_of_a_night_that_asked(whole: Proof, tmp_path: Path) -> None:
    """With the list of keys that were asked, each has its answer by SQL, too."""
    keys = whole.sources.gateway[["merchant_id", "account_id", "order_no"]]
    asked = night_of(replace(whole, sources=replace(whole.sources, universe=keys)), as_of=AS_OF)
    by_sql = sql_totals(written(tmp_path, tables=asked.tables))
    assert unlike(asked.totals, by_sql) == set()
    assert "keys asked = found + not found + failed" in {one.name for one in by_sql}


@pytest.mark.parametrize("is_settled", [True, False])
def test_sql_comes_to_the_figures_of_every_code(tmp_path: Path, *, is_settled: bool) -> None:
    """Over orders of which many carry a break, every code in turn, no figure differs."""
    plan = planted(size=400, broken=200, settled=is_settled)
    proof = prove(plan.sources, rules=plan.rules, as_of=plan.as_of, previous=None)
    night = night_of(proof, as_of=plan.as_of)
    by_sql = sql_totals(written(tmp_path, tables=night.tables))
    assert unlike(night.totals, by_sql) == set()


def test_each_total_that_is_wrong_in_the_night_is_found_by_sql(
    night: Night, by_sql: tuple[ControlTotal, ...]
) -> None:
    """Where both sides of a total are off by the same, it holds by itself and SQL names it."""
    for total in night.totals:
        off = replace(total, left=total.left + 1, right=total.right + 1)
        others = [one for one in night.totals if one is not total]
        assert unlike([*others, off], by_sql) == {(total.id, total.name)}


def test_each_total_that_the_night_forgot_is_found_by_sql(
    night: Night, by_sql: tuple[ControlTotal, ...]
) -> None:
    """A figure that is not nothing and that the night does not tell is named."""
    for total in night.totals:
        if (total.left, total.right) != (0, 0):
            others = [one for one in night.totals if key_of(one) != key_of(total)]
            assert (total.id, total.name) in unlike(others, by_sql)


@pytest.mark.parametrize("name", TOTALS)
def test_each_statement_that_is_wrong_is_found(night: Night, folder: Path, name: str) -> None:
    """Where a statement gives one side more than there is, the night's figures say so."""
    more = '* REPLACE ("left" + 1 AS "left")'
    bent = f"SELECT {more} FROM (\n{sql_files()[name][:-2]}\n)"  # noqa: S608  # our own
    wrong = sql_totals(folder, own={name: bent})
    assert wrong, "the statement says nothing of this night"
    own = {(one.id, one.name) for one in wrong}
    named = unlike([one for one in night.totals if (one.id, one.name) in own], wrong)
    assert named == own


def first_off(column: str) -> Callable[[pa.Table], pa.Table]:
    """The first row says one cent or one row more."""

    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        cells = table.column(column).to_pylist()
        row = next(number for number, cell in enumerate(cells) if cell is not None)
        cells[row] += 1
        return table.set_column(at, table.field(at), pa.array(cells, table.field(at).type))

    return change


def without(column: str, word: str) -> Callable[[pa.Table], pa.Table]:
    """The rows with this word are gone."""
    return lambda table: table.filter(pc.not_equal(table.column(column).cast(pa.string()), word))


def without_first(table: pa.Table) -> pa.Table:
    """The first row is gone."""
    return table.slice(1)


def emptied(table: pa.Table) -> pa.Table:
    """No row is left."""
    return table.slice(0, 0)


def doubled(table: pa.Table) -> pa.Table:
    """The first row stands twice."""
    return pa.concat_tables([table, table.slice(0, 1)])


def all_says(column: str, word: str) -> Callable[[pa.Table], pa.Table]:
    """Every row says another word."""

    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        words = pa.array([word] * table.num_rows).cast(table.field(at).type)
        return table.set_column(at, table.field(at), words)

    return change


CHANGED: list[tuple[str, Callable[[pa.Table], pa.Table], set[str]]] = [
    ("files", first_off("rows_read"), {"T0", "T1"}),
    ("rejects", lambda table: pa.concat_tables([table, a_reject(table)]), {"T0"}),
    ("steps", first_off("number"), {"T2"}),
    ("steps", without("way", "books"), {"T0"}),
    ("orders", first_off("amount"), {"T4", "T5A", "T14"}),
    ("orders", without_first, {"T2", "T4", "T6"}),
    ("answers", first_off("amount"), {"T4", "T5A", "T14"}),
    ("answers", without_first, {"T2", "T4", "T6"}),
    ("answers", all_says("payment_status", "2000"), {"T4", "T5A", "T14"}),
    ("ledger", first_off("amount"), {"T0", "T4", "T5B"}),
    ("ledger", without_first, {"T2", "T4", "T6"}),
    ("instructions", first_off("amount"), {"T8"}),
    ("instructions", all_says("state", "lost"), {"T8"}),
    ("settlement", first_off("gross"), {"T14"}),
    ("settlement", without("entry_type", "payout"), {"T11", "T18", "T19", "T4"}),
    ("settlement", without("entry_type", "reserve"), {"T18", "T19", "T5B"}),
    ("settlement", first_off("fee"), {"T18", "T19", "T5B"}),
    ("settlement", first_off("net"), {"T18"}),
    ("ledger", without("entry_type", "fee"), {"T19", "T5B"}),
    ("held", emptied, {"T11", "T18"}),
    ("held", first_off("amount"), {"T18"}),
    ("effects", without("leg", "ledger"), {"T19"}),
    ("terms", without("name", "payment_status"), {"T4", "T5A"}),
    ("terms", without("name", "fee_contract"), {"T18"}),
    ("terms", without("name", "tolerance"), {"T5A"}),
    ("terms", without("name", "given"), {"T5B", "T5C", "T10"}),
    ("agreed", emptied, {"T10"}),
    ("opening", without_first, {"T7"}),
    ("opening", first_off("exposure"), {"T7"}),
    ("movements", without_first, {"T7"}),
    ("breaks", without_first, {"T4", "T7"}),
    ("breaks", first_off("exposure"), {"T7"}),
    ("breaks", without("code", "OVER_REFUND"), {"T9"}),
    ("matches", without_first, {"T4"}),
    ("matches", without("rule", "exact"), {"T2", "T3", "T4", "T6"}),
    ("matches", doubled, {"T4"}),
    ("matches", all_says("flags", ""), {"T5A"}),
    ("matches", all_says("match_id", "of nobody"), {"T6"}),
    ("pending", first_off("order_amount"), {"T4"}),
    ("pending", first_off("effect_orders"), {"T5A"}),
    ("effects", first_off("amount"), {"T5B", "T5C", "T12"}),
    ("effects", without("leg", "ledger"), {"T5B", "T12"}),
    ("journals", first_off("debit"), {"T12"}),
    ("items", without_first, {"T2", "T4", "T6"}),
    ("items", without("source", "instructions"), {"T8"}),
    ("items", without("source", "payouts"), {"T4", "T6"}),
    ("sides", first_off("count"), {"T14"}),
]
"""File, what is done to it, and the totals that must notice at least."""


def a_reject(table: pa.Table) -> pa.Table:
    """One more row that could not be read."""
    row = dict.fromkeys(table.column_names, "") | {"kind": "orders", "line": 9, "amount": 0}
    columns = [pa.array([row[field.name]]).cast(field.type) for field in table.schema]
    return pa.table(columns, schema=table.schema)


@pytest.mark.parametrize(
    ("name", "change", "numbers"),
    [pytest.param(*each, id=f"{each[0]}-{number}") for number, each in enumerate(CHANGED)],
)
def test_a_file_that_was_changed_is_found(
    night: Night,
    folder: Path,
    tmp_path: Path,
    name: str,
    change: Callable[[pa.Table], pa.Table],
    numbers: set[str],
) -> None:
    """A row more, a row less or another cent in a file disagrees with the night's figures."""
    assert night.tables[name].num_rows or name == "rejects"
    here = changed(folder, to=tmp_path, name=name, table=change(night.tables[name]))
    by_sql = sql_totals(here, own=statements_of(numbers))
    found = unlike([total for total in night.totals if total.id in numbers], by_sql)
    assert numbers <= {number for number, _ in found}, found


@pytest.mark.parametrize("way", ["waits", "cannot be verified"])
def test_an_open_row_without_money_that_is_lost_is_found_by_count(
    case: Any, tmp_path: Path, way: str
) -> None:
    """Each order that waits, or that nobody can verify, stands in its list, whatever it nets."""
    for order_no in ("A", "B", "C"):
        case.order(order_no=order_no)
        if way == "waits":
            case.payment("authorised", order_no=order_no, transaction_id=f"T{order_no}")
            told = {"instruction_id": f"I{order_no}", "approved_at": AS_OF}
            case.move("capture", "approved", order_no=order_no, **told)
        else:
            case.answer("failed", order_no=order_no)
    proof = prove(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)
    night = night_of(proof, as_of=AS_OF)
    name = "pending" if way == "waits" else "unverified"
    table, own = night.tables[name], {"T04_items.sql": sql_files()["T04_items.sql"]}
    counts = [total for total in night.totals if (total.id, total.measure) == ("T4", "count")]
    assert table.num_rows == 3

    whole = written(tmp_path / "whole", tables=night.tables)
    assert unlike(counts, sql_totals(whole, own=own)) == set()
    for row in range(3):
        others = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
        here = changed(whole, to=tmp_path / f"{row}", name=name, table=others)
        assert unlike(counts, sql_totals(here, own=own)), row


def test_every_statement_was_seen_to_change(by_sql: tuple[ControlTotal, ...]) -> None:
    """What the changed files must be noticed by is every number that SQL tells."""
    numbers = {one.id for one in by_sql}
    assert numbers == set().union(*(each[2] for each in CHANGED))


def test_an_auditor_needs_the_folder_and_duckdb_alone(
    night: Night, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """verify.sql, run inside the folder by DuckDB itself, says PROVEN of the sound night alone."""
    assert verdict_of_script(folder, monkeypatch=monkeypatch) == ([], "PROVEN")
    orders = first_off("amount")(night.tables["orders"])
    here = changed(folder, to=tmp_path, name="orders", table=orders)
    lines, verdict = verdict_of_script(here, monkeypatch=monkeypatch)
    assert verdict == "NOT PROVEN"
    assert {"T4", "T5A", "T14"} <= {line[0] for line in lines}


def verdict_of_script(
    folder: Path, *, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[Any, ...]], str]:
    """What a stranger reads who runs the script of the folder."""
    script = sql_files()["verify.sql"]
    monkeypatch.chdir(folder)
    with duckdb.connect(":memory:") as stranger:
        told: list[list[tuple[Any, ...]]] = []
        for statement in stranger.extract_statements(script):
            found = stranger.execute(statement)
            if statement.type == duckdb.StatementType.SELECT:
                told.append(found.fetchall())
    (lines, verdicts) = told
    return lines, verdicts[0][-1]


ESCAPES: Mapping[str, str] = {
    "a file beside the folder": "SELECT * FROM read_csv('/etc/passwd')",
    "the network": "SELECT * FROM 'https://localhost/x.parquet'",
    "an extension": "INSTALL httpfs",
    "another database": "ATTACH '/tmp/elsewhere.db'",
    "a setting": "SET memory_limit = '90GB'",
}


@pytest.mark.parametrize("what", ESCAPES)
def test_the_second_engine_reaches_nothing_but_the_folder(folder: Path, what: str) -> None:
    """No statement reads beside the folder, loads code, leaves the machine or lifts a bound."""
    with reading(folder) as sql, pytest.raises(SqlError, match="Error: "):
        sql.execute(ESCAPES[what])


def test_a_statement_that_takes_too_long_ends(folder: Path) -> None:
    """After its time the process is ended."""
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    with reading(folder, seconds_max=1) as sql, pytest.raises(SqlError, match="within 1 s"):
        sql.execute(endless)


def test_the_proof_of_a_night_holds_no_more_than_its_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is bound by memory of its own: with too little of it nothing is proven."""
    monkeypatch.setattr(second_engine, "NIGHT_MEMORY_MB", 1)

    with pytest.raises(SqlError, match="Out of Memory Error"):
        sql_totals(folder)


@pytest.mark.parametrize(
    ("size", "wanted"), [(1, 384), (200_000_000, 384), (400_000_000, 600), (10**12, 1_536)]
)
def test_the_proof_of_a_larger_night_may_hold_more(size: int, wanted: int) -> None:
    """Bytes of its files say how much, between two bounds."""
    assert night_memory_mb(size) == wanted


def test_a_larger_folder_is_proven_with_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements of a night are read under the bound that its files come to."""
    asked = """SELECT 'T0' AS id, 'bound' AS name, '' AS merchant_id, '' AS account_id,
        '' AS currency, current_setting('memory_limit') AS measure, 0 AS "left", 0 AS "right" """
    bounds = []
    for size in (1, 600_000_000):
        monkeypatch.setattr(second_engine, "_size", lambda _, size=size: size)
        (told,) = sql_totals(folder, own={"T0_bound.sql": asked})
        bounds.append(told.measure)

    with duckdb.connect(":memory:") as connection:
        for at, size in enumerate((1, 600_000_000)):
            connection.execute(f"SET memory_limit = '{night_memory_mb(size)}MB'")
            (bound,) = connection.execute("SELECT current_setting('memory_limit')").fetchone()
            assert bounds[at] == bound


def test_a_file_that_stands_elsewhere_is_read_there(
    night: Night, folder: Path, tmp_path: Path
) -> None:
    """A file that was compared in another version is read where the mapping says."""
    here = changed(folder, to=tmp_path, name="orders", table=night.tables["orders"].slice(1))
    elsewhere = "compared/orders.parquet"
    (here / elsewhere).write_bytes((folder / "inputs/orders.parquet").read_bytes())
    by_sql = sql_totals(here, moved={"inputs/orders.parquet": elsewhere})
    assert unlike(night.totals, by_sql) == set()


@pytest.mark.parametrize("elsewhere", ["answers-1/orders.parquet", "books.aside-1/orders.parquet"])
def test_the_statements_of_a_folder_read_what_stands_elsewhere_there(
    night: Night, folder: Path, tmp_path: Path, elsewhere: str
) -> None:
    """Sealed statements name each file where it lies: books before money, steps set aside."""
    here = changed(folder, to=tmp_path, name="orders", table=night.tables["orders"].slice(1))
    place = here / elsewhere
    place.parent.mkdir()
    place.write_bytes((folder / "inputs/orders.parquet").read_bytes())
    own = sql_files(moved={"inputs/orders.parquet": elsewhere}, banks=False)

    assert unlike(night.totals, sql_totals(here, own=own)) == set()


def test_sql_that_cannot_run_proves_nothing(night: Night, tmp_path: Path) -> None:
    """A file that is missing or is no Parquet fails T14 with what DuckDB says, and ends nothing."""
    here = written(tmp_path, tables=night.tables)
    (here / "results/matches.parquet").write_bytes(b"PAR1 cut")
    (failed,) = proven_in_sql(here, totals=night.totals, account=PLACE)
    assert failed.id == "T14"
    assert not failed.passed
    assert "matches.parquet" in failed.name


@pytest.mark.parametrize("name", [second_engine.ROWS, *TOTALS])
def test_a_proof_that_died_over_any_of_its_statements_is_not_passed(
    night: Night, folder: Path, killed_at: Callable[[str], list[int]], name: str
) -> None:
    """T14 fails, names what was asked, what ended it and what to do; asked again it ties."""
    first_line = second_engine._text(name).partition("\n")[0]
    killed = killed_at(first_line)

    (failed,) = proven_in_sql(folder, totals=night.totals, account=PLACE)

    assert len(killed) == 1
    assert failed.id == "T14"
    assert not failed.passed
    assert f": {name}: the process that asks DuckDB ended (SIGKILL); what was sent" in failed.name
    assert failed.name.endswith("is kept, and nothing of it is proven: run the night again")
    (figures,) = proven_in_sql(folder, totals=night.totals, account=PLACE)
    assert figures.passed


def test_a_proof_that_takes_too_long_is_not_passed(
    night: Night, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total that was asked when the time was over is named."""
    monkeypatch.setattr(second_engine, "reading", partial(reading, seconds_max=3))
    endless = """SELECT 'T5A' AS id, '' AS name, '' AS merchant_id, '' AS account_id,
        '' AS currency, 'count' AS measure, count(*) AS "left", 0 AS "right"
        FROM range(1000000000) a, range(1000000000) b"""

    own = {second_engine.ROWS: "SELECT 1", "T05_legs.sql": endless}
    (failed,) = proven_in_sql(folder, totals=night.totals, account=PLACE, own=own)

    assert not failed.passed
    assert ": T05_legs.sql: not done within 3 s; what was sent" in failed.name


def test_the_script_reads_what_stands_elsewhere_there() -> None:
    """What ships in a folder names the file that was compared, wherever it lies."""
    told = sql_files(moved={"inputs/answers.parquet": "compared/answers.parquet"})
    assert all("inputs/answers.parquet" not in text for text in told.values())
    assert "'compared/answers.parquet'" in told["verify.sql"]


def test_no_bar_is_drawn_among_the_sentences_of_a_night(tmp_path: Path) -> None:
    """DuckDB draws its progress on whatever the night says, after two seconds, if it may."""
    with reading(tmp_path) as sql:
        assert sql.rows("SELECT current_setting('enable_progress_bar')") == [(False,)]
