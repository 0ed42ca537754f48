"""What a night read and came to survives the way into its folder's tables and back."""

import pytest

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.digest import digest_of
from recon.matching.frames.sources import (
    INSTANT,
    AgreedWriteOffs,
    Exported,
    LeftOut,
    LoadCounts,
    SettledDays,
    Sources,
)
from recon.model.terms import ControlTotal, Quarantined, Reject, SourceFile, SourceKind
from recon.proof.engine import reconcile
from recon.proof.ledger_bridge import FILE, OTHER_ACCOUNTS, ledger_steps
from recon.proof.night_tables import (
    RESULTS,
    compared_tables,
    frame_of_table,
    input_tables,
    previous_of_tables,
    result_tables,
    sources_of_tables,
    totals_of,
    totals_table,
)
from tests.injected.injected_files import planted

REJECT = Reject(SourceKind.ORDERS, "orders.csv", 7, "amount", "not an amount", "x", "M1", "1", "A1")
FILE_READ = SourceFile(SourceKind.ORDERS, "orders.csv", "00ff", 91, 3, 1, 1, 1)
QUARANTINED = Quarantined(4, "M1", "1", "A9", "orders.csv", 9, "status", "no such status")


@pytest.fixture(scope="module")
def night():
    """Orders of which some carry one break each, every code in turn."""
    return planted(size=400, broken=200)


def compared(night, sources, **terms):
    return reconcile(sources, rules=night.rules, as_of=night.as_of, **terms)


@pytest.fixture(scope="module")
def result(night):
    return compared(night, night.sources)


def tables_of(night, sources, *, previous=None):
    """All tables of which a comparison can be made again."""
    ledger_sums = ledger_steps(sources, rules=night.rules)
    small = compared_tables(sources, rules=night.rules, previous=previous, ledger_sums=ledger_sums)
    return {**dict(input_tables(sources)), **small}


def test_the_same_result_comes_of_the_tables(night, result):
    """Sources that went into tables and back give the same digest and the same totals."""
    again = compared(night, sources_of_tables(tables_of(night, night.sources)))
    assert again.digest == result.digest
    assert again.control_totals == result.control_totals
    assert len(result.breaks) == 200


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "items"])
def test_a_frame_of_a_result_comes_back(result, name):
    table = dict(result_tables(result))[name]
    assert table.schema.equals(SCHEMAS[name].columns)
    frame, back = getattr(result, name), frame_of_table(table)
    assert digest_of([back]) == digest_of([frame[[*back.columns]]])


def test_every_item_is_shown_under_an_id_of_the_result(result):
    """Of its own set, or of the break that explains it."""
    rows = dict(result_tables(result))["items"].to_pylist()
    shown = {"MATCHED": {*result.matches["match_id"]}, "BREAK": {*result.breaks["break_id"]}}
    for state, ids in shown.items():
        assert {row["result_id"] for row in rows if row["state"] == state} <= ids
        assert any(row["state"] == state for row in rows)


def test_what_stands_beside_the_rows_comes_back(case):
    case.order().payment().entry().line()
    given = case.sources()
    sources = Sources(
        given.orders,
        given.gateway,
        given.ledger,
        None,
        rejects=(REJECT,),
        files=(FILE_READ,),
        merged_rows={"orders": LoadCounts(3, 1, 1, 1)},
        arrived={SourceKind.ORDERS: {"identical repeats": -2}},
        ledger_sums={"EUR": {FILE: 12000, OTHER_ACCOUNTS: -2000}},
        exported=(Exported("b1", "EUR", 2, booked=True), Exported("b2", "EUR", 1, booked=False)),
        agreed_write_offs=AgreedWriteOffs({"b3": ("EUR", 5)}, {"E9": ("EUR", 7)}),
        opening_balance=(LeftOut("payments", "EUR", 2, 900),),
        settlement=given.settlement,
        settled=SettledDays("2026-10-01", "2026-10-02", waits_for="03.csv"),
        quarantined=(QUARANTINED,),
        unread_batches=frozenset({("M", "1", "EUR", "B1"), ("M", "1", "", "B2")}),
    )
    small = compared_tables(
        sources,
        rules=case.rules,
        previous=None,
        ledger_sums=ledger_steps(sources, rules=case.rules),
    )
    back = sources_of_tables({**dict(input_tables(sources)), **small})
    same = ("rejects", "files", "merged_rows", "arrived", "ledger_sums", "exported", "quarantined")
    for name in (*same, "agreed_write_offs", "opening_balance", "settled", "unread_batches"):
        assert getattr(back, name) == getattr(sources, name), name
    assert back.instructions is None
    assert back.universe is None
    assert previous_of_tables(small) is None


def test_the_night_before_comes_back(case, new_case):
    earlier = new_case().order().run()
    case.after(earlier, charged_back=("A7",)).order().payment()
    sources, previous = case.sources(), case.previous
    small = compared_tables(sources, rules=case.rules, previous=previous, ledger_sums={})
    back = previous_of_tables(small)
    assert digest_of([back.breaks]) == digest_of([previous.breaks])
    assert digest_of([back.chargebacks]) == digest_of([previous.chargebacks])
    assert (back.as_of, back.closed, dict(back.away)) == (previous.as_of, frozenset(), {})


def test_the_totals_come_back():
    totals = (ControlTotal("T4", "orders", "M", "1", "EUR", "amount", 70, 69),)
    assert totals_of(totals_table(totals)) == totals


def test_a_file_without_a_row_is_a_frame_of_its_own():
    """Its columns have their types, and what is done to the frame stays with it."""
    table = SCHEMAS["orders"].columns.empty_table()
    first, second = frame_of_table(table), frame_of_table(table)
    first["more"] = first["order_no"]
    first["amount"] = first["amount"].astype("str")

    assert [*second.columns] == table.column_names
    assert second["expected_captured_amount"].dtype == "Int64"
    assert second["ordered_at"].dtype == INSTANT
    assert [*frame_of_table(table).columns] == table.column_names
