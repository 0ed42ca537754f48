"""Each total is broken on purpose once: a total that cannot fail proves nothing.

SQL over the files of a night is the engine of them all: the comparison is broken, a file is, and
the SQL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.placements import PLACE_NAMES
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.arrays import stacked
from recon.matching.frames.sources import AgreedWriteOffs, LoadCounts, Previous
from recon.model.terms import ControlTotal, SourceFile, SourceKind, Verdict
from recon.proof import totals_in_sql
from recon.proof.books_bridge import KNOWN_BEFORE, REPEATS
from recon.proof.engine import reconcile
from recon.proof.night_tables import input_tables, totals_table
from recon.proof.proven import Proof, prove, proven
from recon.proof.sql_session import SqlError, reading
from recon.proof.totals_in_sql import (
    NAME,
    OF_SHEETS,
    SHOWN_MAX,
    control_totals,
    key_of,
    night_memory_mb,
    proven_in_sql,
    second_proof,
    sql_files,
    sql_totals,
)
from recon.proof.verdict import OpenCounts, verdict_of
from tests.injected.injected_files import planted
from tests.recon.matching.conftest import AS_OF
from tests.recon.proof.night_folders import (
    PLACE,
    Change,
    Tables,
    all_says,
    changed,
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

Break = Callable[[Proof], Proof]
Stated = set[tuple[str, str]]
"""Number and name of totals."""
TOTALS = sorted({name for name in sql_files(banks=False) if name[0] == "T"} - {OF_SHEETS})


def many(case: Any) -> Any:
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


def settled(case: Any) -> Any:
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


def proof_of(case: Any) -> Proof:
    """What the totals are computed from."""
    return prove(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)


def frames_with(proof: Proof, **frames: pd.DataFrame) -> Proof:
    """The proof with other frames of the result."""
    own = {name: frames[name] for name in ("breaks", "effects") if name in frames}
    return replace(proof, frames=replace(proof.frames, **frames), **own)


def without_break(proof: Proof) -> Proof:
    """A break falls out of the result."""
    return frames_with(proof, breaks=proof.frames.breaks.iloc[1:])


def without_match(proof: Proof) -> Proof:
    """A match that was classified falls out of the result."""
    return frames_with(proof, matches=proof.frames.matches.iloc[:-1])


def without_places_of_matches(proof: Proof) -> Proof:
    """The items of matched sets have no place."""
    return replace(proof, places=proof.places.take(proof.places["state"] != "MATCHED"))


def other_amount(proof: Proof) -> Proof:
    """Payments are shown as another amount than the gateway's answers say."""
    gateway = proof.sources.gateway
    more = gateway.assign(amount=gateway["amount"] + 1)
    return replace(proof, sources=replace(proof.sources, gateway=more))


def doubled_pending(proof: Proof) -> Proof:
    """A pending set stands twice."""
    return frames_with(proof, pending=pd.concat([proof.frames.pending] * 2).assign(order_amount=1))


def other_effect(proof: Proof) -> Proof:
    """An effect is off by one cent."""
    effects = proof.frames.effects
    return frames_with(proof, effects=effects.assign(amount=effects["amount"] + 1))


def other_ledger_effect(proof: Proof) -> Proof:
    """An effect of one leg only is off by one cent."""
    effects = proof.frames.effects
    ledger = effects["leg"].eq("ledger").astype("int64")
    return frames_with(proof, effects=effects.assign(amount=effects["amount"] + ledger))


def without_flags(proof: Proof) -> Proof:
    """A match hides why it carries an effect."""
    return frames_with(proof, matches=proof.frames.matches.assign(flags=""))


def spent(proof: Proof) -> Proof:
    """More rounding than the budget."""
    matches = proof.frames.matches
    return frames_with(proof, matches=matches.assign(flags="rounding", effect_orders=6))


def doubled_item(proof: Proof) -> Proof:
    """An item of each source stands in two places."""
    _, first = np.unique(proof.places["source"].astype(str), return_index=True)
    twice = [proof.places, proof.places.take(first)]
    return replace(proof, places=stacked(twice, names=PLACE_NAMES))


def lost_on_the_way(proof: Proof) -> Proof:
    """A row of the files never reached the comparison, and no step tells of it."""
    steps = {**proof.sources.arrived[SourceKind.ORDERS], REPEATS: 1}
    arrived = {SourceKind.ORDERS: steps}
    return replace(proof, sources=replace(proof.sources, arrived=arrived))


def more_keys(proof: Proof) -> Proof:
    """A key was asked that has no answer."""
    key = {"merchant_id": ["M"], "account_id": ["1"], "order_no": ["nobody answered"]}
    return replace(proof, sources=replace(proof.sources, universe=pd.DataFrame(key)))


def unknown_state(proof: Proof) -> Proof:
    """An instruction has a state that nobody counts."""
    rows = proof.sources.instructions
    assert rows is not None
    told = replace(proof.sources, instructions=rows.assign(state="lost"))
    return replace(proof, sources=told)


def file_with(proof: Proof, **counts: int) -> Proof:
    """A file of one row whose counts differ."""
    given: dict[str, Any] = {"rows_read": 1, "rows_accepted": 1, "rows_rejected": 0, **counts}
    file = SourceFile(SourceKind.ORDERS, "o.csv", "", 1, rows_skipped=0, **given)
    return replace(proof, sources=replace(proof.sources, files=(file,)))


def without_excess(proof: Proof) -> Proof:
    """Breaks of refunds beyond their payment are not told."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks[breaks["code"].ne("OVER_REFUND")])


def more_read(proof: Proof) -> Proof:
    """A row that was read is accounted for nowhere."""
    return file_with(proof, rows_read=2)


def more_rejected(proof: Proof) -> Proof:
    """A file counts a row both accepted and rejected."""
    return file_with(proof, rows_rejected=1)


def lost_in_store(proof: Proof) -> Proof:
    """The store took fewer rows than were accepted."""
    counts = {"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=0)}
    return replace(proof, sources=replace(proof.sources, merged_rows=counts))


def without_payout(proof: Proof) -> Proof:
    """A payout of a settlement file has no place."""
    return without_places(proof, source="payouts")


def without_line(proof: Proof) -> Proof:
    """A line of a settlement file has no place."""
    return without_places(proof, source="settlement")


def without_entries(proof: Proof) -> Proof:
    """The entries of the ledger have no place."""
    return without_places(proof, source="ledger")


def without_places(proof: Proof, *, source: str) -> Proof:
    """The items of a source have no places."""
    return replace(proof, places=proof.places.take(proof.places["source"] != source))


def lost_keys(proof: Proof) -> Proof:
    """Sets that were made of keys are lost."""
    sets = proof.joined.sets
    return replace(proof, joined=replace(proof.joined, sets=sets.assign(kind=-1)))


def unseen_moves(proof: Proof) -> Proof:
    """A confirmed capture whose order no set judges is money that nobody looked for."""
    return replace(proof, states=proof.states * 0 + "")


def lost_of_last_night(proof: Proof) -> Proof:
    """A break that stays falls out of tonight's breaks."""
    stays = proof.moved[proof.moved["movement"].eq("stays")]["break_id"].iloc[0]
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks[breaks["break_id"].ne(stays)])


def doubled_break(proof: Proof) -> Proof:
    """A break stands twice."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=pd.concat([breaks, breaks.iloc[:1]]))


def revalued(proof: Proof) -> Proof:
    """Breaks change their money on the way to the report."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks.assign(exposure=breaks["exposure"] + 1))


def not_agreed(proof: Proof) -> Proof:
    """A write-off that nobody agreed to closed a break."""
    return replace(proof, sources=replace(proof.sources, agreed_write_offs=AgreedWriteOffs()))


def short_pay_out(proof: Proof) -> Proof:
    """The payout of a batch is one cent short of what is listed beside it."""
    return lines_with(proof, "net", of="payout")


def other_fee(proof: Proof) -> Proof:
    """The fee of a line is another one than its group has."""
    return lines_with(proof, "fee", of="capture")


def other_reserve(proof: Proof) -> Proof:
    """More was released than is listed as kept."""
    return lines_with(proof, "gross", of="reserve")


def lines_with(proof: Proof, name: str, *, of: str) -> Proof:
    """One cent less in a column of the lines of one type."""
    lines = proof.sources.settlement
    assert lines is not None
    short = lines.assign(**{name: lines[name] - lines["entry_type"].eq(of).astype("int64")})
    return replace(proof, sources=replace(proof.sources, settlement=short))


def unlisted(proof: Proof) -> Proof:
    """Nothing of what the gateway holds is listed."""
    assert proof.cash is not None
    return replace(proof, cash=replace(proof.cash, listed=()))


def entries_moved(proof: Proof) -> Proof:
    """The books have a cent more of everything than was compared."""
    ledger = proof.sources.ledger
    assert ledger is not None
    more = ledger.assign(amount=ledger["amount"] + 1)
    return replace(proof, sources=replace(proof.sources, ledger=more))


def other_debit(proof: Proof) -> Proof:
    """One side of the journals is off."""
    return replace(proof, journals=proof.journals.assign(debit=proof.journals["debit"] * 2))


def other_journals(proof: Proof) -> Proof:
    """The journals balance, and book other money than their breaks."""
    both = {side: proof.journals[side] * 2 for side in ("debit", "credit")}
    return replace(proof, journals=proof.journals.assign(**both))


BROKEN: list[tuple[Break, set[str]]] = [
    (more_read, {"T0", "T1"}),
    (more_rejected, {"T1"}),
    (lost_in_store, {"T2"}),
    (lost_on_the_way, {"T2"}),
    (more_keys, {"T3"}),
    (lost_keys, {"T3"}),
    (without_break, {"T4"}),
    (without_match, {"T4"}),
    (without_payout, {"T14"}),
    (without_line, {"T14"}),
    (without_entries, {"T14"}),
    (without_places_of_matches, {"T14"}),
    (doubled_item, {"T14"}),
    (other_amount, {"T4", "T5A"}),
    (doubled_pending, {"T4"}),
    (other_effect, {"T5A", "T5B"}),
    (without_flags, {"T5A"}),
    (other_ledger_effect, {"T5C", "T19"}),
    (lost_of_last_night, {"T7"}),
    (doubled_break, {"T7"}),
    (revalued, {"T7"}),
    (unknown_state, {"T8"}),
    (unseen_moves, {"T8"}),
    (without_excess, {"T9"}),
    (spent, {"T10"}),
    (not_agreed, {"T10"}),
    (short_pay_out, {"T11", "T18", "T19"}),
    (unlisted, {"T11", "T18"}),
    (other_debit, {"T12"}),
    (other_journals, {"T12"}),
    (other_reserve, {"T18", "T19"}),
    (other_fee, {"T19"}),
    (entries_moved, {"T19"}),
]
"""What is done to the result of a night, and the totals that must fail at least."""


LOSING = ("orders", "gateway", "ledger")


def counted_once_more(items: pa.Table) -> pa.Table:
    """Every row of the result says one row more than there is."""
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
def earlier(make_case: Callable[[], Any]) -> Reconciliation:
    """The night before."""
    return before(make_case()).run()


def before(case: Any) -> Any:
    """What was there then: of one order less was paid and booked."""
    many(case).order(order_no="W").payment(order_no="W", amount=9800, transaction_id="TW")
    return case.entry(order_no="W", amount=9800)


@pytest.fixture(scope="module")
def second(make_case: Callable[[], Any], earlier: Reconciliation) -> Any:
    """A second night, on which that was written off."""
    case = before(make_case()).entry("write_off", order_no="W", amount=200)
    return settled(case).after(earlier)


@pytest.fixture(scope="module")
def whole(second: Any) -> Proof:
    """It with all that any total is stated over: files, store, journals, payouts."""
    sources = second.sources()
    breaks = second.previous.breaks["break_id"]
    told = replace(
        sources,
        merged_rows={"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)},
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: len(sources.orders) - 1}},
        agreed_write_offs=AgreedWriteOffs(dict.fromkeys(breaks, ("EUR", 200)), {}),
    )
    return file_with(prove(told, rules=second.rules, as_of=second.as_of, previous=second.previous))


@pytest.fixture(scope="module")
def previous(second: Any) -> Previous:
    """What it carries forward."""
    found: Previous = second.previous
    return found


@pytest.fixture(scope="module")
def night(whole: Proof, previous: Previous) -> Tables:
    """It, as it would be sealed."""
    return night_of(whole, as_of=AS_OF, previous=previous)


@pytest.fixture(scope="module")
def folder(night: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    return written(tmp_path_factory.mktemp("night"), tables=night)


@pytest.fixture(scope="module")
def totals(folder: Path) -> tuple[ControlTotal, ...]:
    """Its totals, as they are kept in it."""
    told = control_totals(folder, account=PLACE)
    pq.write_table(totals_table(told), folder / SCHEMAS["totals"].path)
    return told


def failing(totals: Any) -> Stated:
    """The totals that do not hold."""
    return {(total.id, total.name) for total in totals if not total.passed}


def unlike(totals: Any, by_sql: Any) -> Stated:
    """The kept totals that SQL says otherwise when it is asked again."""
    figures, *named = second_proof(totals, by_sql=by_sql, account=PLACE)
    assert figures.passed == (not named)
    return {(one.id, one.name.split(": left = ")[0].split(": right = ")[0]) for one in named}


@pytest.fixture(scope="module")
def failures(
    whole: Proof, previous: Previous, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Stated]:
    """Which equations of which totals fail for each thing done to the night."""
    found = {}
    for spoil, _ in BROKEN:
        place = tmp_path_factory.mktemp("broken")
        broken = proven_in(place, spoil(whole), as_of=AS_OF, previous=previous)
        found[spoil.__name__] = failing(broken.control_totals)
    given = dict(input_tables(whole.sources))
    for source in LOSING:
        # A row is lost between source and sets.
        fewer: Any = {source: getattr(whole.sources, source).iloc[1:].reset_index(drop=True)}
        sources = replace(whole.sources, **fewer)
        classified = prove(sources, rules=whole.rules, as_of=AS_OF, previous=previous)
        tables = {**night_of(classified, as_of=AS_OF, previous=previous), **given}
        place = written(tmp_path_factory.mktemp("lost"), tables=tables)
        found[source] = failing(control_totals(place, account=PLACE))
    for name, change in UNPLACED:
        tables = night_of(whole, as_of=AS_OF, previous=previous)
        place = written(
            tmp_path_factory.mktemp("changed"), tables={**tables, name: change(tables[name])}
        )
        found[str(place)] = failing(control_totals(place, account=PLACE))
    return found


def test_all_totals_hold_as_computed(totals: tuple[ControlTotal, ...]) -> None:
    """Nothing is broken, so every total holds; all that SQL states are there, in their order."""
    assert failing(totals) == set()
    numbers = [int(re.sub(r"\D", "", total.id)) for total in totals]
    assert numbers == sorted(numbers)
    assert {total.id for total in totals} == {"T6"}.union(*(told for _, told in BROKEN))


@pytest.mark.parametrize(("spoil", "numbers"), [pytest.param(*b, id=b[0].__name__) for b in BROKEN])
def test_a_broken_result_fails_its_total(
    failures: dict[str, Stated], spoil: Break, numbers: set[str]
) -> None:
    """The engine's result is spoilt, and the totals say so."""
    assert numbers <= {number for number, _ in failures[spoil.__name__]}


@pytest.mark.parametrize("source", LOSING)
def test_a_row_that_is_lost_before_it_is_judged_fails(
    failures: dict[str, Stated], source: str
) -> None:
    """It was accepted, is in scope, and has no place."""
    assert {"T2", "T4", "T14"} <= {number for number, _ in failures[source]}


def test_every_equation_was_seen_to_fail(
    whole: Proof, totals: tuple[ControlTotal, ...], failures: dict[str, Stated], tmp_path: Path
) -> None:
    """A total of many equations is proven one by one: none of them holds whatever happens."""
    keys = whole.sources.gateway[["merchant_id", "account_id", "order_no"]]
    asked = replace(whole, sources=replace(whole.sources, universe=keys))
    of_asked = proven_in(tmp_path, asked, as_of=AS_OF).control_totals
    assert failing(of_asked) == set()
    stated = {(one.id, one.name) for one in (*totals, *of_asked) if one.id != "T14"}

    assert stated - set().union(*failures.values()) == set()


def test_every_total_that_is_stated_is_broken_here_or_in_a_file_or_of_the_bank() -> None:
    """A statement that is added without something that breaks it is noticed."""
    shipped = {int(name[1:3]) for name in sql_files() if re.match(r"T\d\d_", name)}
    broken = set().union(*(numbers for _, numbers in BROKEN), *(each[2] for each in CHANGED))
    of_others = {13, 15, 16, 17}  # test_sheets_in_sql, test_bank_in_sql

    assert shipped - of_others == {int(re.sub(r"\D", "", number)) for number in broken} - {1}


CHANGED: list[tuple[str, Change, set[str]]] = [
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
    night: Tables,
    folder: Path,
    totals: tuple[ControlTotal, ...],
    tmp_path: Path,
    name: str,
    change: Change,
    numbers: set[str],
) -> None:
    """A row more, a row less or another cent in a file disagrees with the kept figures."""
    assert night[name].num_rows or name == "rejects"
    here = changed(folder, to=tmp_path, name=name, table=change(night[name]))
    by_sql = sql_totals(here, own=statements_of(numbers))
    found = unlike([total for total in totals if total.id in numbers], by_sql)
    assert numbers <= {number for number, _ in found}, found


def injected_case(case: Any) -> Any:
    """A chargeback that the settlement and the books have, and the query does not show."""
    case.order().payment().entry().entry("chargeback", amount=4000)
    case.line().line("chargeback", gross=-4000)
    return case.order(order_no="R").payment(order_no="R", transaction_id="TR").entry(order_no="R")


@pytest.mark.parametrize("spoilt", ["", "- by_lines"])
def test_sql_takes_a_chargeback_of_the_settlement_for_proven(
    case: Any, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    """What the books have more of it is explained by the lines; SQL that forgets them is found."""
    read = totals_in_sql._text
    assert spoilt in read("rows.sql")
    monkeypatch.setattr(totals_in_sql, "_text", lambda name: read(name).replace(spoilt, ""))
    result = injected_case(case).proven()

    assert result.matches["flags"].tolist()[0] == "chargeback_booked"
    assert {number for number, _ in failing(result.control_totals)} == (
        {"T5A"} if spoilt else set()
    )


@pytest.mark.parametrize("state", ["rejected", "in_doubt"])
def test_a_refund_of_nothing_needs_no_verdict(case: Any, state: str) -> None:
    """T8: it asked for no money, and stands alone; a cancellation of 0.00 is judged as ever."""
    case.ledger().move("refund", state, order_no="R", amount=0)
    result = case.move("cancel", state, order_no="C", amount=0).proven()

    assert failing(result.control_totals) == set()
    name = "rejected + in doubt = those that were judged"
    assert {one.left for one in result.control_totals if one.name == name} == {0, 1}


@pytest.mark.parametrize("is_settled", [True, False])
def test_all_totals_hold_for_every_code(*, is_settled: bool) -> None:
    """Over orders of which many carry a break, every code in turn."""
    plan = planted(size=400, broken=200, settled=is_settled)
    result = reconcile(plan.sources, rules=plan.rules, as_of=plan.as_of)

    of_plan = proven(result, sources=plan.sources, rules=plan.rules)

    assert failing(of_plan.control_totals) == set()
    assert {one.id for one in of_plan.control_totals} >= {"T0", "T3", "T9", "T14"}


def test_roll_forward_holds_over_two_nights(case: Any, new_case: Callable[[], Any]) -> None:
    """T7 by count and by exposure, with a break that ended, one that changed and a new one."""
    earlier = many(new_case().order(order_no="late")).run()
    second = many(case).order(order_no="new").order(order_no="late")
    second.payment(order_no="late", transaction_id="TL").entry(order_no="late")
    second.order(order_no="O", amount=8000, updated_at="2026-11-02T00:00:00Z")
    second.rows["orders"][2]["updated_at"] = "2026-11-01T00:00:00Z"

    result = second.after(earlier).proven()

    sevens = [total for total in result.control_totals if total.id == "T7"]
    assert {total.measure for total in sevens} == {"count", "amount"}
    assert failing(result.control_totals) == set()
    moved = result.movements
    told = dict(zip(moved["order_no"], moved["movement"], strict=True))
    assert {name: told[name] for name in ("new", "late", "O", "X")} == {
        "new": "new",
        "late": "matched late",
        "O": "revalued",
        "X": "stays",
    }


def test_a_failed_total_is_not_proven(case: Any) -> None:
    """One unanswered key of the universe, and the night is not proven."""
    result = many(case).asked("M", "R", "O", "X", "P", "I", "lost").proven()

    assert result.verdict is Verdict.NOT_PROVEN
    assert {number for number, _ in failing(result.control_totals)} == {"T3"}


@pytest.mark.parametrize("lacks", [(), ("the bank main: a gap",)])
def test_what_a_bank_lacks_makes_a_night_incomplete(whole: Proof, lacks: tuple[str, ...]) -> None:
    """One that lacks nothing else."""
    verdict = verdict_of(OpenCounts(0, 0, 0), sources=whole.sources, rules=whole.rules, lacks=lacks)

    assert verdict is (Verdict.INCOMPLETE if lacks else Verdict.RECONCILED)


def test_files_are_read_wherever_their_folder_lies(night: Tables, tmp_path: Path) -> None:
    """Whatever marks of SQL stand in the name of a place."""
    folder = written(tmp_path / """the "third" night's""", tables=night)

    assert failing(control_totals(folder, account=PLACE)) == set()


@pytest.mark.parametrize("name", [name for name in TOTALS if name != "T03_asked.sql"])
def test_each_statement_that_is_wrong_is_found(folder: Path, name: str) -> None:
    """Where a statement gives one side more than there is, its totals fail."""
    more = '* REPLACE ("left" + 1 AS "left")'
    bent = f"SELECT {more} FROM (\n{sql_files()[name][:-2]}\n)"  # noqa: S608  # our own
    wrong = sql_totals(folder, own={name: bent})
    assert wrong, "the statement says nothing of this night"
    assert failing(wrong) == {(one.id, one.name) for one in wrong}


def test_a_kept_total_that_is_wrong_or_was_forgotten_is_found(
    totals: tuple[ControlTotal, ...],
) -> None:
    """Where both sides of a total are off by the same, it holds by itself and SQL names it."""
    kept = [total for total in totals if total.id != "T14"]
    for total in kept:
        off = replace(total, left=total.left + 1, right=total.right + 1)
        others = [one for one in kept if key_of(one) != key_of(total)]
        assert unlike([*others, off], totals) == {(total.id, total.name)}
        if (total.left, total.right) != (0, 0):
            assert (total.id, total.name) in unlike(others, totals)


TIES = ControlTotal("T4", "orders", "M", "1", "EUR", "amount", 70, 70)


def test_kept_figures_are_held_against_sql_side_by_side() -> None:
    """One line counts them; each side that is another one is named by its total, unless it is 0."""
    (figures,) = second_proof([TIES], by_sql=[TIES], account=PLACE)
    assert (figures.id, figures.name, figures.left, figures.right) == ("T14", NAME, 1, 1)
    figures, side = second_proof([TIES], by_sql=[replace(TIES, right=71)], account=PLACE)
    assert (figures.left, figures.right) == (1, 0)
    assert side == replace(TIES, name="orders: right = right by SQL", right=71)
    nothing = replace(TIES, name="nobody", left=0, right=0)
    figures, left, right = second_proof([TIES, nothing], by_sql=[], account=PLACE)
    assert (figures.left, figures.right) == (2, 1)
    assert (left.left, left.right, right.left, right.right) == (70, 0, 70, 0)


def test_what_sql_holds_by_itself_must_tie() -> None:
    """A total of T14 has no other figure: its own two sides are the proof."""
    own = ControlTotal("T14", "exact", "M", "1", "EUR", "count", 5, 4)
    figures, named = second_proof([], by_sql=[own], account=PLACE)
    assert not figures.passed
    assert named == own


def test_many_differences_are_counted_and_the_first_are_named() -> None:
    """A page has an end: the count tells of all of them."""
    several = [replace(TIES, name=f"{number:03d}") for number in range(SHOWN_MAX)]
    figures, *named = second_proof(several, by_sql=[], account=PLACE)
    assert (figures.left, figures.right, len(named)) == (SHOWN_MAX, 0, SHOWN_MAX)


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
    table, own = night[name], {"T04_items.sql": sql_files()["T04_items.sql"]}
    assert table.num_rows == 3

    whole = written(tmp_path / "whole", tables=night)
    assert failing(sql_totals(whole, own=own)) == set()
    for row in range(3):
        others = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
        here = changed(whole, to=tmp_path / f"{row}", name=name, table=others)
        assert failing(sql_totals(here, own=own)), row


def test_an_auditor_needs_the_folder_and_duckdb_alone(
    night: Tables,
    folder: Path,
    totals: tuple[ControlTotal, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """verify.sql, run inside the folder by DuckDB itself, says PROVEN of the sound night alone."""
    assert totals
    assert verdict_of_script(folder, monkeypatch=monkeypatch) == ([], "PROVEN")
    orders = first_off("amount")(night["orders"])
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
def test_the_totals_in_sql_reaches_nothing_but_the_folder(folder: Path, what: str) -> None:
    """No statement reads beside the folder, loads code, leaves the machine or lifts a bound."""
    with reading(folder) as sql, pytest.raises(SqlError, match="Error: "):
        sql.execute(ESCAPES[what])


def test_the_proof_of_a_night_holds_no_more_than_its_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is bound by memory of its own: with too little of it nothing is proven."""
    monkeypatch.setattr(totals_in_sql, "NIGHT_MEMORY_MB", 1)

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
        monkeypatch.setattr(totals_in_sql, "_size", lambda _, size=size: size)
        (told,) = sql_totals(folder, own={"T0_bound.sql": asked})
        bounds.append(told.measure)

    with duckdb.connect(":memory:") as connection:
        for at, size in enumerate((1, 600_000_000)):
            connection.execute(f"SET memory_limit = '{night_memory_mb(size)}MB'")
            (bound,) = connection.execute("SELECT current_setting('memory_limit')").fetchone()
            assert bounds[at] == bound


def test_a_file_that_stands_elsewhere_is_read_there(
    night: Tables, folder: Path, totals: tuple[ControlTotal, ...], tmp_path: Path
) -> None:
    """A file that was compared in another version is read where the mapping says."""
    here = changed(folder, to=tmp_path, name="orders", table=night["orders"].slice(1))
    elsewhere = "compared/orders.parquet"
    (here / elsewhere).parent.mkdir(exist_ok=True)
    (here / elsewhere).write_bytes((folder / "inputs/orders.parquet").read_bytes())
    by_sql = sql_totals(here, moved={"inputs/orders.parquet": elsewhere})
    assert unlike(totals, by_sql) == set()


@pytest.mark.parametrize("elsewhere", ["answers-1/orders.parquet", "books.aside-1/orders.parquet"])
def test_the_statements_of_a_folder_read_what_stands_elsewhere_there(
    night: Tables,
    folder: Path,
    totals: tuple[ControlTotal, ...],
    tmp_path: Path,
    elsewhere: str,
) -> None:
    """Sealed statements name each file where it lies: books before money, steps set aside."""
    here = changed(folder, to=tmp_path, name="orders", table=night["orders"].slice(1))
    place = here / elsewhere
    place.parent.mkdir()
    place.write_bytes((folder / "inputs/orders.parquet").read_bytes())
    own = sql_files(moved={"inputs/orders.parquet": elsewhere}, banks=False)

    assert unlike(totals, sql_totals(here, own=own)) == set()


def test_sql_that_cannot_run_proves_nothing(
    night: Tables, totals: tuple[ControlTotal, ...], tmp_path: Path
) -> None:
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
    folder: Path, totals: tuple[ControlTotal, ...], killed_at: Callable[[str], list[int]], name: str
) -> None:
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


def test_a_proof_that_takes_too_long_is_not_passed(
    folder: Path, totals: tuple[ControlTotal, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total that was asked when the time was over is named."""
    monkeypatch.setattr(totals_in_sql, "reading", partial(reading, seconds_max=3))
    endless = """SELECT 'T5A' AS id, '' AS name, '' AS merchant_id, '' AS account_id,
        '' AS currency, 'count' AS measure, count(*) AS "left", 0 AS "right"
        FROM range(1000000000) a, range(1000000000) b"""

    own = {totals_in_sql.ROWS: "SELECT 1", "T05_legs.sql": endless}
    (failed,) = proven_in_sql(folder, totals=totals, account=PLACE, own=own)

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
