"""Each total is broken on purpose once: a total that cannot fail proves nothing.

SQL over the files of a night is the engine of them all: the comparison is broken, a file is, and
the SQL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result import Deferred
from recon.matching.frames.sources import AgreedWriteOffs, LoadCounts, Previous
from recon.model.terms import ControlTotal, SourceFile, SourceKind, Verdict
from recon.proof import totals_in_sql
from recon.proof.engine import reconcile
from recon.proof.ledger_bridge import KNOWN_BEFORE, REPEATS
from recon.proof.night_tables import input_tables, totals_table
from recon.proof.proven import proven
from recon.proof.sql_session import SqlError, reading
from recon.proof.totals_in_sql import (
    DISPLAYED_MAX,
    NAME,
    OF_SHEETS,
    control_totals,
    key_of,
    night_memory_mb,
    proven_in_sql,
    sql_files,
    sql_totals,
    totals_of_agreement,
)
from recon.proof.verdict import OpenCounts, verdict_of
from tests.injected.injected_files import planted
from tests.recon.matching.conftest import AS_OF
from tests.recon.proof.night_folders import (
    PLACE,
    Change,
    Night,
    all_says,
    changed,
    compared_night,
    doubled,
    emptied,
    first_off,
    night_of,
    proven_in,
    statements_of,
    without,
    without_first,
    written,
)

pytestmark = pytest.mark.xdist_group("control totals")
"""They share what takes longer to make than to look at."""

Break = Callable[[Night], Night]
TOTALS = sorted({name for name in sql_files(banks=False) if name[0] == "T"} - {OF_SHEETS})


def many(case):
    """Matches, a break of each leg, a pending set, moves of ours, rounding and an excess."""
    case.order(order_no="M").payment(order_no="M", transaction_id="TM").entry(order_no="M")
    case.order(order_no="R").payment(order_no="R", transaction_id="TR", amount=10003)
    case.entry(order_no="R", amount=10003)
    case.order(order_no="O").payment(order_no="O", transaction_id="TO", amount=12000)
    case.entry(order_no="O").entry("fee", order_no="O", amount=30)
    case.order("refunded", order_no="X")
    case.payment("refunded", order_no="X", transaction_id="TX", refunded_amount=11000)
    case.order("pending", order_no="P", ordered_at="2026-11-20T20:00:00Z")
    case.order("authorised", order_no="I").payment(order_no="I", transaction_id="TI")
    case.move("capture", "confirmed", order_no="I")
    budget = {"absolute_minor_units": 5, "night_budget_minor_units": 5}
    return case.ruled(tolerance={"EUR": budget})


def settled(case):
    """A payment that is settled and paid out, one that the ledger lacks, and older ones."""
    for row in case.rows["gateway"]:
        row["transaction_date"] = EARLIER
    case.order(order_no="S").payment(order_no="S", transaction_id="TS").entry(order_no="S")
    case.line(order_no="S", transaction_id="TS", batch_id="B2")
    case.order().payment().entry().line(fee=300)
    keyless = {"order_no": "", "transaction_id": ""}
    case.line("reserve", gross=-500, **keyless).line("payout", gross=9300, fee=300, **keyless)
    case.entry("payout", order_no="", reference_no="B1", amount=8900)
    case.entry("fee", amount=250).entry("reserve", order_no="", amount=100)
    case.order(order_no="B").payment(order_no="B", transaction_id="TB", transaction_date=EARLIER)
    return case.ruled(journal={"accounts": ACCOUNTS}, fee_contract=CONTRACT)


CONTRACT = {
    "rounding": "down",
    "lines": [
        {"name": "all", "from": "2026-01-01", "type": "capture", "currency": "EUR"}
        | {"fixed_minor_units": 300, "tolerance_minor_units": 300}
    ],
}
"""What any capture of these lines costs is tolerated by it."""
EARLIER = "2026-09-01T00:00:00Z"
ACCOUNTS = {
    "clearing": "1360",
    "sales": "8400",
    "refunds": "8700",
    "chargebacks": "6930",
    "payouts": "1200",
    "fees": "4970",
    "reserves": "1361",
}


def of_result(name, change):
    """Something is done to a part of the result."""

    def spoil(night):
        made = change(getattr(night.result, {**ROWS}.get(name, name)))
        return night.with_result(**{name: Deferred(lambda: made) if name in ROWS else made})

    return spoil


ROWS = {"every_match": "matches"}
"""What of a result is read when it is asked for, and what it is then."""


def of_source(name, change):
    """Something is done to a source after it was compared."""
    return lambda night: night.with_sources(**{name: change(getattr(night.sources, name))})


def more(column, by=1, **only):
    """A column says so much more in every row, or where another one says a word."""

    def change(frame):
        rows = pd.Series(data=True, index=frame.index)
        for name, word in only.items():
            rows &= frame[name].eq(word)
        return frame.assign(**{column: frame[column] + by * rows.astype("int64")})

    return change


def but(column, word):
    """Rows that say a word are gone."""
    return lambda frame: frame[frame[column].ne(word)]


def file_with(night, **counts):
    """A file of one row whose counts differ."""
    given: dict[str, Any] = {"rows_read": 1, "rows_accepted": 1, "rows_rejected": 0, **counts}
    file = SourceFile(SourceKind.ORDERS, "o.csv", "", 1, rows_skipped=0, **given)
    return night.with_sources(files=(file,))


def without_one_that_stays(night):
    moved = night.result.movements
    stays = moved[moved["movement"].eq("stays")]["break_id"].iloc[0]
    return of_result("breaks", but("break_id", stays))(night)


def twice(*columns):
    """Columns say twice as much."""
    return lambda frame: frame.assign(**{name: frame[name] * 2 for name in columns})


KEY = {"merchant_id": ["M"], "account_id": ["1"], "order_no": ["nobody answered"]}
STORED = {"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=0)}
BROKEN: Mapping[str, tuple[Break, set[str]]] = {
    "a row read and accounted for nowhere": (lambda n: file_with(n, rows_read=2), {"T0", "T1"}),
    "a row both accepted and rejected": (lambda n: file_with(n, rows_rejected=1), {"T1"}),
    "fewer rows stored": (of_source("merged_rows", lambda _: STORED), {"T2"}),
    "a row lost on the way, and no step tells of it": (
        of_source(
            "arrived",
            lambda steps: {SourceKind.ORDERS: {**steps[SourceKind.ORDERS], REPEATS: 1}},
        ),
        {"T2"},
    ),
    "a key asked without an answer": (
        of_source("universe", lambda _: pd.DataFrame(KEY)),
        {"T3"},
    ),
    "sets of keys lost": (of_result("items", all_says("set_kind", "")), {"T3"}),
    "a break lost": (of_result("breaks", lambda rows: rows.iloc[1:]), {"T4"}),
    "a match lost": (of_result("every_match", lambda rows: rows.iloc[:-1]), {"T4"}),
    "payouts not counted": (of_result("sides", but("source", "payouts")), {"T14"}),
    "lines not counted": (of_result("sides", but("source", "settlement")), {"T14"}),
    "entries not counted": (of_result("sides", but("source", "ledger")), {"T14"}),
    "matched items not counted": (of_result("sides", but("state", "MATCHED")), {"T14"}),
    "items counted once more": (of_result("sides", more("count")), {"T14"}),
    "other payments than answered": (of_source("gateway", more("amount")), {"T4", "T5A"}),
    "a pending set twice": (
        of_result("pending", lambda rows: pd.concat([rows] * 2).assign(order_amount=1)),
        {"T4"},
    ),
    "another effect": (of_result("effects", more("amount")), {"T5A", "T5B"}),
    "a match hides why it has an effect": (
        of_result("every_match", lambda rows: rows.assign(flags="")),
        {"T5A"},
    ),
    "another effect on the ledger": (
        of_result("effects", more("amount", leg="ledger")),
        {"T5C", "T19"},
    ),
    "a break of last night lost": (without_one_that_stays, {"T7"}),
    "a break twice": (
        of_result("breaks", lambda rows: pd.concat([rows, rows.iloc[:1]])),
        {"T7"},
    ),
    "breaks of other money": (of_result("breaks", more("exposure")), {"T7"}),
    "an instruction of a state that nobody counts": (
        of_source("instructions", lambda rows: rows.assign(state="lost")),
        {"T8"},
    ),
    "a confirmed capture that no set has": (
        of_result("items", all_says("state", "")),
        {"T8"},
    ),
    "refunds beyond their payment not told": (
        of_result("breaks", but("code", "OVER_REFUND")),
        {"T9"},
    ),
    "more rounding than the budget": (
        of_result("every_match", lambda rows: rows.assign(flags="rounding", effect_orders=6)),
        {"T10"},
    ),
    "a write-off that nobody agreed to": (
        of_source("agreed_write_offs", lambda _: AgreedWriteOffs()),
        {"T10"},
    ),
    "a payout a cent short of its lines": (
        of_source("settlement", more("net", -1, entry_type="payout")),
        {"T11", "T18", "T19"},
    ),
    "nothing listed as held": (of_result("held", lambda rows: rows.iloc[:0]), {"T11", "T18"}),
    "one side of the journals": (of_result("journals", twice("debit")), {"T12"}),
    "journals of other money": (of_result("journals", twice("debit", "credit")), {"T12"}),
    "more released than listed": (
        of_source("settlement", more("gross", -1, entry_type="reserve")),
        {"T18", "T19"},
    ),
    "another fee than its group has": (
        of_source("settlement", more("fee", -1, entry_type="capture")),
        {"T19"},
    ),
    "a cent more in the ledger": (of_source("ledger", more("amount")), {"T19"}),
}
"""What is done to the result of a night, and the totals that must fail at least."""


LOSING = ("orders", "gateway", "ledger")


def counted_once_more(items):
    at = items.column_names.index("items")
    return items.set_column(at, items.field(at), pc.add(items["items"], 1))


UNPLACED: list[tuple[str, Change]] = [
    ("items", emptied),
    ("items", counted_once_more),
    ("movements", emptied),
    ("matches", without("rule", "exact")),
    ("settlement", without("entry_type", "payout")),
    ("settlement", without("entry_type", "reserve")),
]
"""Files that lost rows by which some equation alone fails."""


@pytest.fixture(scope="module")
def earlier(make_case):
    """The night before."""
    return before(make_case()).run()


def before(case):
    """What was there then: of one order less was paid and booked."""
    many(case).order(order_no="W").payment(order_no="W", amount=9800, transaction_id="TW")
    return case.entry(order_no="W", amount=9800)


@pytest.fixture(scope="module")
def second(make_case, earlier):
    case = before(make_case()).entry("write_off", order_no="W", amount=200)
    return settled(case).after(earlier)


@pytest.fixture(scope="module")
def whole(second):
    """It with all that any total is stated over: files, store, journals, payouts."""
    sources = second.sources()
    breaks = second.previous.breaks["break_id"]
    told = replace(
        sources,
        merged_rows={"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)},
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: len(sources.orders) - 1}},
        agreed_write_offs=AgreedWriteOffs(dict.fromkeys(breaks, ("EUR", 200)), {}),
    )
    return file_with(
        compared_night(told, rules=second.rules, as_of=second.as_of, previous=second.previous)
    )


@pytest.fixture(scope="module")
def previous(second):
    found: Previous = second.previous
    return found


@pytest.fixture(scope="module")
def night(whole, previous):
    return night_of(whole, previous=previous)


@pytest.fixture(scope="module")
def folder(night, tmp_path_factory):
    return written(tmp_path_factory.mktemp("night"), tables=night)


@pytest.fixture(scope="module")
def totals(folder):
    told = control_totals(folder, account=PLACE)
    pq.write_table(totals_table(told), folder / SCHEMAS["totals"].path)
    return told


def failing(totals):
    return {(total.id, total.name) for total in totals if not total.passed}


def unlike(totals, by_sql):
    figures, *named = totals_of_agreement(totals, by_sql=by_sql, account=PLACE)
    assert figures.passed == (not named)
    return {(one.id, one.name.split(": left = ")[0].split(": right = ")[0]) for one in named}


@pytest.fixture(scope="module")
def failures(whole, previous, tmp_path_factory):
    """Which equations of which totals fail for each thing done to the night."""
    found = {}
    for name, (spoil, _) in BROKEN.items():
        place = tmp_path_factory.mktemp("broken")
        found[name] = failing(proven_in(place, spoil(whole), previous=previous).control_totals)
    given = dict(input_tables(whole.sources))
    for source in LOSING:
        # A row is lost between source and sets.
        fewer: Any = {source: getattr(whole.sources, source).iloc[1:].reset_index(drop=True)}
        sources = replace(whole.sources, **fewer)
        lost = compared_night(sources, rules=whole.rules, as_of=AS_OF, previous=previous)
        tables = {**night_of(lost, previous=previous), **given}
        place = written(tmp_path_factory.mktemp("lost"), tables=tables)
        found[source] = failing(control_totals(place, account=PLACE))
    for name, change in UNPLACED:
        tables = night_of(whole, previous=previous)
        place = written(
            tmp_path_factory.mktemp("changed"), tables={**tables, name: change(tables[name])}
        )
        found[str(place)] = failing(control_totals(place, account=PLACE))
    return found


def test_all_totals_hold_as_computed(totals):
    assert failing(totals) == set()
    numbers = [int(re.sub(r"\D", "", total.id)) for total in totals]
    assert numbers == sorted(numbers)
    assert {total.id for total in totals} == {"T6"}.union(*(told for _, told in BROKEN.values()))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_result_fails_its_total(failures, name):
    assert BROKEN[name][1] <= {number for number, _ in failures[name]}


@pytest.mark.parametrize("source", LOSING)
def test_a_row_that_is_lost_before_it_is_judged_fails(failures, source):
    assert {"T2", "T4", "T14"} <= {number for number, _ in failures[source]}


def test_every_equation_was_seen_to_fail(whole, totals, failures, tmp_path):
    keys = whole.sources.gateway[["merchant_id", "account_id", "order_no"]]
    of_asked = proven_in(tmp_path, whole.with_sources(universe=keys)).control_totals
    assert failing(of_asked) == set()
    stated = {(one.id, one.name) for one in (*totals, *of_asked) if one.id != "T14"}

    assert stated - set().union(*failures.values()) == set()


def test_every_total_that_is_stated_is_broken_here_or_in_a_file_or_of_the_bank():
    """A statement that is added without something that breaks it is noticed."""
    shipped = {int(name[1:3]) for name in sql_files() if re.match(r"T\d\d_", name)}
    broken = set().union(
        *(numbers for _, numbers in BROKEN.values()), *(each[2] for each in CHANGED)
    )
    of_others = {13, 15, 16, 17}  # test_sheets_in_sql, test_bank_in_sql

    assert shipped - of_others == {int(re.sub(r"\D", "", number)) for number in broken} - {1}


CHANGED: list[tuple[str, Change, set[str]]] = [
    ("files", first_off("rows_read"), {"T0", "T1"}),
    ("rejects", lambda table: pa.concat_tables([table, a_reject(table)]), {"T0"}),
    ("steps", first_off("number"), {"T2"}),
    ("steps", without("way", "ledger"), {"T0"}),
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
    ("settlement", first_off("fee"), {"T19", "T5B"}),
    ("settlement", first_off("net"), {"T18"}),
    ("ledger", without("entry_type", "fee"), {"T19", "T5B"}),
    ("held", emptied, {"T11", "T18"}),
    ("held", first_off("amount"), {"T18"}),
    ("effects", without("leg", "ledger"), {"T19"}),
    ("terms", without("name", "payment_status"), {"T4", "T5A"}),
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


def a_reject(table):
    """One more row that could not be read."""
    row = dict.fromkeys(table.column_names, "") | {"kind": "orders", "line": 9, "amount": 0}
    columns = [pa.array([row[field.name]]).cast(field.type) for field in table.schema]
    return pa.table(columns, schema=table.schema)


@pytest.mark.parametrize(
    ("name", "change", "numbers"),
    [pytest.param(*each, id=f"{each[0]}-{number}") for number, each in enumerate(CHANGED)],
)
def test_a_file_that_was_changed_is_found(night, folder, totals, tmp_path, name, change, numbers):
    """A row more, a row less or another cent in a file disagrees with the kept figures."""
    assert night[name].num_rows or name == "rejects"
    here = changed(folder, to=tmp_path, name=name, table=change(night[name]))
    by_sql = sql_totals(here, own=statements_of(numbers))
    found = unlike([total for total in totals if total.id in numbers], by_sql)
    assert numbers <= {number for number, _ in found}, found


def injected_case(case):
    """A chargeback that the settlement and the ledger have, and the query does not show."""
    case.order().payment().entry().entry("chargeback", amount=4000)
    case.line().line("chargeback", gross=-4000)
    return case.order(order_no="R").payment(order_no="R", transaction_id="TR").entry(order_no="R")


@pytest.mark.parametrize("spoilt", ["", "- by_lines"])
def test_sql_takes_a_chargeback_of_the_settlement_for_proven(case, monkeypatch, spoilt):
    """What the ledger has more of it is explained by the lines; SQL that forgets them is found."""
    read = totals_in_sql._text
    assert spoilt in read("rows.sql")
    monkeypatch.setattr(totals_in_sql, "_text", lambda name: read(name).replace(spoilt, ""))
    result = injected_case(case).proven()

    assert result.matches["flags"].tolist()[0] == "chargeback_booked"
    assert {number for number, _ in failing(result.control_totals)} == (
        {"T5A"} if spoilt else set()
    )


@pytest.mark.parametrize("state", ["rejected", "in_doubt"])
def test_a_refund_of_nothing_needs_no_verdict(case, state):
    """T8: it asked for no money, and stands alone; a cancellation of 0.00 is judged as ever."""
    case.ledger().move("refund", state, order_no="R", amount=0)
    result = case.move("cancel", state, order_no="C", amount=0).proven()

    assert failing(result.control_totals) == set()
    name = "rejected + in doubt = those that were compared"
    assert {one.left for one in result.control_totals if one.name == name} == {0, 1}


@pytest.mark.parametrize("is_settled", [True, False])
def test_all_totals_hold_for_every_code(*, is_settled):
    plan = planted(size=400, broken=200, settled=is_settled)
    result = reconcile(plan.sources, rules=plan.rules, as_of=plan.as_of)

    of_plan = proven(result, sources=plan.sources, rules=plan.rules)

    assert failing(of_plan.control_totals) == set()
    assert {one.id for one in of_plan.control_totals} >= {"T0", "T3", "T9", "T14"}


@pytest.mark.parametrize("lacks", [(), ("the bank main: a gap",)])
def test_what_a_bank_lacks_makes_a_night_incomplete(whole, lacks):
    """One that lacks nothing else."""
    verdict = verdict_of(OpenCounts(0, 0, 0), sources=whole.sources, rules=whole.rules, lacks=lacks)

    assert verdict is (Verdict.INCOMPLETE if lacks else Verdict.RECONCILED)


def test_files_are_read_wherever_their_folder_lies(night, tmp_path):
    """Whatever marks of SQL stand in the name of a place."""
    folder = written(tmp_path / """the "third" night's""", tables=night)

    assert failing(control_totals(folder, account=PLACE)) == set()


OF_OTHER_RUNS = frozenset({"T03_asked.sql", "T02_reported.sql"})
"""Of a night before its end, and of plain files (`test_carried` breaks what it proves)."""


@pytest.mark.parametrize("name", [name for name in TOTALS if name not in OF_OTHER_RUNS])
def test_each_statement_that_is_wrong_is_found(folder, name):
    """Where a statement gives one side more than there is, its totals fail."""
    more = '* REPLACE ("left" + 1 AS "left")'
    bent = f"SELECT {more} FROM (\n{sql_files()[name][:-2]}\n)"  # noqa: S608  # our own
    wrong = sql_totals(folder, own={name: bent})
    assert wrong, "the statement says nothing of this night"
    assert failing(wrong) == {(one.id, one.name) for one in wrong}


def test_a_kept_total_that_is_wrong_or_was_forgotten_is_found(totals):
    """Where both sides of a total are off by the same, it holds by itself and SQL names it."""
    kept = [total for total in totals if total.id != "T14"]
    for total in kept:
        off = replace(total, left=total.left + 1, right=total.right + 1)
        others = [one for one in kept if key_of(one) != key_of(total)]
        assert unlike([*others, off], totals) == {(total.id, total.name)}
        if (total.left, total.right) != (0, 0):
            assert (total.id, total.name) in unlike(others, totals)


TIES = ControlTotal("T4", "orders", "M", "1", "EUR", "amount", 70, 70)


def test_kept_figures_are_held_against_sql_side_by_side():
    """One line counts them; each side that is another one is named by its total, unless it is 0."""
    (figures,) = totals_of_agreement([TIES], by_sql=[TIES], account=PLACE)
    assert (figures.id, figures.name, figures.left, figures.right) == ("T14", NAME, 1, 1)
    figures, side = totals_of_agreement([TIES], by_sql=[replace(TIES, right=71)], account=PLACE)
    assert (figures.left, figures.right) == (1, 0)
    assert side == replace(TIES, name="orders: right = right by SQL", right=71)
    nothing = replace(TIES, name="nobody", left=0, right=0)
    figures, left, right = totals_of_agreement([TIES, nothing], by_sql=[], account=PLACE)
    assert (figures.left, figures.right) == (2, 1)
    assert (left.left, left.right, right.left, right.right) == (70, 0, 70, 0)


def test_what_sql_holds_by_itself_must_tie():
    """A total of T14 has no other figure: its own two sides are the proof."""
    own = ControlTotal("T14", "exact", "M", "1", "EUR", "count", 5, 4)
    figures, named = totals_of_agreement([], by_sql=[own], account=PLACE)
    assert not figures.passed
    assert named == own


def test_many_differences_are_counted_and_the_first_are_named():
    """A page has an end: the count tells of all of them."""
    several = [replace(TIES, name=f"{number:03d}") for number in range(DISPLAYED_MAX)]
    figures, *named = totals_of_agreement(several, by_sql=[], account=PLACE)
    assert (figures.left, figures.right, len(named)) == (DISPLAYED_MAX, 0, DISPLAYED_MAX)


@pytest.mark.parametrize("way", ["waits", "cannot be verified"])
def test_an_open_row_without_money_that_is_lost_is_found_by_count(case, tmp_path, way):
    """Each order that waits, or that nobody can verify, stands in its list, whatever it nets."""
    for order_no in ("A", "B", "C"):
        case.order(order_no=order_no)
        if way == "waits":
            case.payment("authorised", order_no=order_no, transaction_id=f"T{order_no}")
            told = {"instruction_id": f"I{order_no}", "approved_at": AS_OF}
            case.move("capture", "approved", order_no=order_no, **told)
        else:
            case.answer("failed", order_no=order_no)
    night = night_of(
        compared_night(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)
    )
    name = "pending" if way == "waits" else "unverified"
    table, own = night[name], {"T04_items.sql": sql_files()["T04_items.sql"]}
    assert table.num_rows == 3

    whole = written(tmp_path / "whole", tables=night)
    assert failing(sql_totals(whole, own=own)) == set()
    for row in range(3):
        others = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
        here = changed(whole, to=tmp_path / f"{row}", name=name, table=others)
        assert failing(sql_totals(here, own=own)), row


def test_an_auditor_needs_the_folder_and_duckdb_alone(night, folder, totals, tmp_path, monkeypatch):
    """verify.sql, run inside the folder by DuckDB itself, says PROVEN of the sound night alone."""
    assert totals
    assert verdict_of_script(folder, monkeypatch=monkeypatch) == ([], "PROVEN")
    orders = first_off("amount")(night["orders"])
    here = changed(folder, to=tmp_path, name="orders", table=orders)
    lines, verdict = verdict_of_script(here, monkeypatch=monkeypatch)
    assert verdict == "NOT PROVEN"
    assert {"T4", "T5A", "T14"} <= {line[0] for line in lines}


def verdict_of_script(folder, *, monkeypatch):
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
def test_the_totals_in_sql_reaches_nothing_but_the_folder(folder, what):
    """No statement reads beside the folder, loads code, leaves the machine or lifts a bound."""
    with reading(folder) as sql, pytest.raises(SqlError, match="Error: "):
        sql.execute(ESCAPES[what])


def test_the_proof_of_a_night_holds_no_more_than_its_bound(folder, monkeypatch):
    """It is bound by memory of its own: with too little of it nothing is proven."""
    monkeypatch.setattr(totals_in_sql, "NIGHT_MEMORY_MB", 1)

    with pytest.raises(SqlError, match="Out of Memory Error"):
        sql_totals(folder)


@pytest.mark.parametrize(
    ("size", "wanted"), [(1, 384), (200_000_000, 384), (400_000_000, 600), (10**12, 1_536)]
)
def test_the_proof_of_a_larger_night_may_hold_more(size, wanted):
    """Bytes of its files say how much, between two bounds."""
    assert night_memory_mb(size) == wanted


def test_a_larger_folder_is_proven_with_more(folder, monkeypatch):
    """The statements of a night are read under the bound that its files come to."""
    asked = """SELECT 'T0' AS id, 'bound' AS name, '' AS merchant_id, '' AS account_id,
        '' AS currency, current_setting('memory_limit') AS measure, 0 AS "left", 0 AS "right" """
    bounds = []
    for size in (1, 600_000_000):
        monkeypatch.setattr(totals_in_sql, "_size", lambda _, size=size: size)
        (told,) = sql_totals(folder, own={"T0_bound.sql": asked})
        bounds.append(told.measure)

    with duckdb.connect(":memory:") as connection:
        for at, size in enumerate((1, 600_000_000)):
            connection.execute(f"SET memory_limit = '{night_memory_mb(size)}MB'")
            (bound,) = connection.execute("SELECT current_setting('memory_limit')").fetchone()
            assert bounds[at] == bound


@pytest.mark.parametrize(
    "elsewhere", ["answers-1/orders.parquet", "ledger.superseded-1/orders.parquet"]
)
def test_the_statements_of_a_folder_read_what_stands_elsewhere_there(
    night, folder, totals, tmp_path, elsewhere
):
    """Sealed statements name each file where it lies: books before money, steps set aside."""
    here = changed(folder, to=tmp_path, name="orders", table=night["orders"].slice(1))
    place = here / elsewhere
    place.parent.mkdir()
    place.write_bytes((folder / "inputs/orders.parquet").read_bytes())
    own = sql_files(moved={"inputs/orders.parquet": elsewhere}, banks=False)

    assert unlike(totals, sql_totals(here, own=own)) == set()


def test_sql_that_cannot_run_proves_nothing(night, totals, tmp_path):
    """A file that is missing or is no Parquet fails T14 with what DuckDB says, and ends nothing."""
    here = written(tmp_path, tables=night)
    (here / "results/matches.parquet").write_bytes(b"PAR1 cut")
    for (failed,) in (
        control_totals(here, account=PLACE),
        proven_in_sql(here, totals=totals, account=PLACE),
    ):
        assert failed.id == "T14"
        assert not failed.passed
        assert "matches.parquet" in failed.name


@pytest.mark.parametrize("name", [totals_in_sql.ROWS, *TOTALS])
def test_a_proof_that_died_over_any_of_its_statements_is_not_passed(
    folder, totals, killed_at, name
):
    """T14 fails, names what was asked, what ended it and what to do; asked again it ties."""
    first_line = totals_in_sql._text(name).partition("\n")[0]
    killed = killed_at(first_line)

    (failed,) = control_totals(folder, account=PLACE)

    assert len(killed) == 1
    assert failed.id == "T14"
    assert not failed.passed
    assert f": {name}: the process that asks DuckDB ended (SIGKILL); what was sent" in failed.name
    assert failed.name.endswith("is kept, and nothing of it is proven: run the night again")
    (figures,) = proven_in_sql(folder, totals=totals, account=PLACE)
    assert figures.passed


def test_a_proof_that_takes_too_long_is_not_passed(folder, totals, monkeypatch):
    """The total that was asked when the time was over is named."""
    monkeypatch.setattr(totals_in_sql, "reading", partial(reading, seconds_max=3))
    endless = """SELECT 'T5A' AS id, '' AS name, '' AS merchant_id, '' AS account_id,
        '' AS currency, 'count' AS measure, count(*) AS "left", 0 AS "right"
        FROM range(1000000000) a, range(1000000000) b"""

    own = {totals_in_sql.ROWS: "SELECT 1", "T05_legs.sql": endless}
    (failed,) = proven_in_sql(folder, totals=totals, account=PLACE, own=own)

    assert not failed.passed
    assert ": T05_legs.sql: not done within 3 s; what was sent" in failed.name


def test_the_script_reads_what_stands_elsewhere_there():
    """What ships in a folder names the file that was compared, wherever it lies."""
    told = sql_files(moved={"inputs/answers.parquet": "compared/answers.parquet"})
    assert all("inputs/answers.parquet" not in text for text in told.values())
    assert "'compared/answers.parquet'" in told["verify.sql"]


def test_no_bar_is_drawn_among_the_sentences_of_a_night(tmp_path):
    """DuckDB draws its progress on whatever the night says, after two seconds, if it may."""
    with reading(tmp_path) as sql:
        assert sql.rows("SELECT current_setting('enable_progress_bar')") == [(False,)]
