"""Every bound table against the audit log: each column, a row more, a row less is named."""

import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Boolean, delete, insert, select, text, update

from recon.instructions.instruction import Instruction, terms_of
from recon.model.errors import StoreError
from recon.model.nights import Mode, NightRequest
from recon.model.resolutions import BreakAnswer, Import
from recon.model.terms import InstructionKind
from recon.store.database.history import REPORTED, append
from recon.store.database.record import (
    ATTESTED_TABLES,
    BEFORE_MONEY,
    CASE,
    INSTRUCTION,
    RUN,
    SUMMARY,
    SWITCH,
    cells_of,
    changed,
    changed_in,
    difference,
    folded,
    record,
    tampered,
)
from recon.store.money import case_rows, sending_rows
from recon.store.money.instruction_rows import find
from recon.store.nights import runs
from recon.store.nights.runs import RECONCILED
from recon.store.people import resolution_rows
from recon.store.schema import history, result_summary, run
from recon.store.schema.columns import Instant, IsoDate
from tests.recon.instructions.sample_instructions import INSTRUCTION as CAPTURE
from tests.recon.store.scripted import eligible_captures

_PAST_ON_POSTGRESQL = "ALTER TABLE history DISABLE TRIGGER ALL"
AT = datetime(2026, 11, 22, tzinfo=UTC)
TABLES = {bound.table.name: bound for bound in ATTESTED_TABLES}
PAYOUT = replace(CAPTURE, kind=InstructionKind.PAYOUT, amount=500, currency="EUR", sealed="gAAAA")


def speak(store, run):
    eligible_captures(store, run, orders=2)
    with store.writing() as connection:
        sending_rows.turn_switch(connection, stop=True, by="Jo Ahn", reason="a drill", at=AT)
        item, _ = find(connection)
        case_rows.open_case(connection, item, reason="the gateway shows less", at=AT)
        case_rows.close_case(
            connection, item.instruction_id, verdict="applied", reason="seen by two", at=AT
        )
        answer(connection)
        finish(connection)


def answer(connection):
    for version in (1, 2):
        given = BreakAnswer(resolution="write_off", owner="Kim Bell", comment=f"asked {version}")
        brought = Import("answers.xlsx", f"{version}", "r1", "Jo Ahn")
        waits = version == 2
        new = resolution_rows.NewAnswer(
            ("1", "2"), "b-1", version, given, waits, 7, "This break", "EUR", 100
        )
        resolution_rows.save(connection, [new], brought=brought, at=AT)
    (waiting,) = resolution_rows.waiting_write_offs(connection)
    assert resolution_rows.agree(connection, waiting.answer_id, by="Kim Bell", at=AT)


def finish(connection):
    digests = {"verdict": "NOT PROVEN", "rules_digest": "aa", "result_digest": "bb"}
    document = '{"verdict": "NOT PROVEN"}'
    connection.execute(insert(result_summary).values(run_id="r1", document=document))
    summary = {SUMMARY.under: cells_of(SUMMARY, {"document": document})}
    written = {"workbook": "/r/1.xlsx", "workbook_sha256": "cc"}
    compared = runs.result_event("r1", values=digests, event=RECONCILED, details=summary)
    append(connection, [compared, runs.result_event("r1", values=written, event=REPORTED)], at=AT)
    runs.note_result(connection, "r1", values=digests | written)
    runs.finish(connection, "r1", status="finished", problem="no ledger", now=AT)
    request = NightRequest("100042", "100042001", date(2026, 11, 21), Mode.LIVE)
    began = {"as_of": AT, "now": AT}
    runs.start(connection, request, run_id="r2", predecessor="opening", **began)
    runs.start(connection, request, run_id="r3", **began)
    runs.finish(connection, "r3", status="stopped", problem="no disk", now=AT)
    runs.resume(connection, "r3", now=AT)


@pytest.fixture
def spoken(store, run):
    speak(store, run)
    return store


def problems(store):
    with store.reading() as connection:
        return list(changed_in(connection, ATTESTED_TABLES))


def first_row(connection, bound):
    own = bound.table.primary_key.columns.values()
    row = connection.execute(select(bound.table).order_by(*own).limit(1)).mappings().one()
    return dict(row)


def is_row(bound, row):
    return [column == row[column.name] for column in bound.table.primary_key]


def another(column, before):
    if isinstance(column.type, Boolean):
        return not before
    if isinstance(column.type, Instant):
        return AT + timedelta(days=9)
    if isinstance(column.type, IsoDate):
        return date(2026, 1, 1)
    return (before or 0) + 1_000 if column.type.python_type is int else "x"


def test_no_table_and_no_column_is_left_out():
    """What the gate compares, what `recon verify` does, and the few columns that neither does."""
    words = ["sending_switch", "contradiction"]
    assert [bound.table.name for bound in BEFORE_MONEY] == [*words, "run"]
    others = ["result_summary", "break_answer"]
    assert [*TABLES] == ["instruction", *words, "run", *others]
    assert {*INSTRUCTION.only_where} == {"gateway_request_id"}
    assert {name: {*bound.free} for name, bound in TABLES.items() if bound.free} == {
        "instruction": {
            *("natural_key", "hold", "file_id", "line", "run_id", "planned_at", "outcome", "code"),
            *("message", "outcome_at", "approved_by", "approved_at", "sent_at", "attempts"),
            *("batch_id", "refund_reference_id", "baseline_status"),
        },
        "run": {"owner", "owner_process", "step", "workbook", "history_head"},
        "break_answer": {"answer_id"},
    }


def test_what_was_written_by_the_product_agrees(spoken):
    assert problems(spoken) == []
    with spoken.reading() as connection:
        assert list(tampered(connection, INSTRUCTION)) == []
        assert [name for name, each in TABLES.items() if not first_row(connection, each)] == []


@pytest.mark.parametrize("table", TABLES)
def test_every_bound_column_is_named_with_table_and_key(spoken, table):
    bound = TABLES[table]
    start = f"{table.replace('_', ' ')} "
    with spoken.writing() as connection:
        row = first_row(connection, bound)
        for column in bound.columns:
            if column in bound.only_where:
                continue
            forged = row | {column: another(bound.table.c[column], row[column])}
            write(connection, bound, row, becomes=forged)
            found = list(changed_in(connection, ATTESTED_TABLES))
            write(connection, bound, forged, becomes=row)

            named = f"{start}{row[bound.key]}: "
            assert [one for one in found if not one.startswith(named)] == []
            # A row that says to be another one of its entity is unknown as that, and missed.
            words = f"its {column.replace('_', ' ')} "
            words = words if column != bound.within else "its table does not"
            assert any(words in one for one in found), (column, found)
        assert list(changed_in(connection, ATTESTED_TABLES)) == []


def write(connection, bound, row, *, becomes):
    connection.execute(update(bound.table).where(*is_row(bound, row)).values(becomes))


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_gone_or_was_made_up_is_named(spoken, table):
    bound = TABLES[table]
    with spoken.writing() as connection:
        row = first_row(connection, bound)
        copy = dict(row)
        for column in bound.table.primary_key:
            copy[column.name] = another(column, row[column.name])
        copy |= {bound.within: 9} if bound.within == "version" else {}
        copy |= {"natural_key": "other"} if "natural_key" in row else {}
        if table == "run":
            copy["status"] = "stopped"
        connection.execute(insert(bound.table).values(copy))
    (made_up,) = problems(spoken)
    with spoken.writing() as connection:
        connection.execute(delete(bound.table).where(*is_row(bound, copy)))
        if table == "instruction":
            connection.execute(text("DELETE FROM attempt"))
        connection.execute(delete(bound.table).where(*is_row(bound, row)))
    (gone,) = problems(spoken)

    start = f"{table.replace('_', ' ')} "
    assert made_up.startswith(start)
    assert "the history has no event of it" in made_up
    assert gone.startswith(f"{start}{row[bound.key]}: the history knows it, its table does not")
    assert gone.endswith("it was removed past the journal")


def test_a_row_twice_under_one_key_is_found(spoken):
    (bound,) = (each for name, each in TABLES.items() if name == "break_answer")
    with spoken.writing() as connection:
        copy = first_row(connection, bound) | {"answer_id": 99, "merchant_id": "another"}
        connection.execute(insert(bound.table).values(copy))
    assert any("has no event of it" in one for one in problems(spoken))


def test_the_state_of_every_instruction_is_looked_at_alone(spoken):
    """The gate looks at the state of all instructions, however old, and for those that are gone."""
    with spoken.writing() as connection:
        connection.execute(text("UPDATE instruction SET state = 'confirmed'"))
        (found,) = tampered(connection, INSTRUCTION)
    assert "its state is confirmed, bound was approved" in found
    with spoken.writing() as connection:
        connection.execute(text("DELETE FROM instruction WHERE instruction_id = 'i002'"))
        _, gone = tampered(connection, INSTRUCTION)
    assert gone.startswith("instruction i002: the history knows it")


def test_a_row_and_its_event_are_one(store):
    """The event has the written cells; a change of a row that is not there writes nothing."""
    with store.writing() as connection:
        turn = {"turn": 1, "stopped": True, "turned_by": "Ann", "reason": "", "at": AT}
        assert record(connection, SWITCH, turn, event="stopped", at=AT, details={"by": "Ann"})
        shut, of = {"verdict": "applied"}, {"instruction_id": "r9"}
        assert not record(connection, CASE, shut, of=of, event="closed", at=AT)
        (event,) = connection.execute(select(history)).mappings()
    assert (event["entity"], event["entity_id"], event["event"]) == ("sending", "1", "stopped")
    assert event["data"] == (
        '{"by":"Ann","row":{"at":"2026-11-22T00:00:00.000000+00:00","reason":null,"stopped":true,'
        '"turned_by":"Ann"}}'
    )


def test_a_link_that_was_spoilt_binds_nothing(spoken):
    """The chain says so by itself; the rows beside it are missed, and nothing breaks down."""
    with spoken.writing() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        past = "DROP TRIGGER history_no_update" if is_sqlite else _PAST_ON_POSTGRESQL
        connection.execute(text(past))
        connection.execute(text("UPDATE history SET data = 'x' WHERE entity = 'sending'"))
    (found,) = problems(spoken)
    assert found.startswith("sending switch 1: the history has no event of it")


def test_a_date_that_is_none_is_told_and_never_read(spoken):
    """A text in the place of a date is named by the gate, and stops whoever reads the run."""
    with spoken.writing() as connection:
        connection.execute(text("UPDATE run SET business_date = '2026-11-3x' WHERE run_id = 'r1'"))
    (found,) = problems(spoken)
    assert found.startswith("run r1: its business date is 2026-11-3x, bound was 2026-11-20")
    with (
        spoken.reading() as connection,
        pytest.raises(StoreError, match="'2026-11-3x', which is no date"),
    ):
        runs.get(connection, "r1")


def test_one_entity_is_looked_at_alone(spoken):
    with spoken.writing() as connection:
        connection.execute(update(run).values(verdict="RECONCILED"))
        assert len(list(changed(connection, RUN, of="r1"))) == 1
        connection.execute(delete(run).where(run.c.run_id == "r3"))
        assert len(list(changed(connection, RUN, of="r1"))) == 1


def told(item, *, bound):
    return difference(INSTRUCTION, terms_of(item), then=bound)


def test_a_claim_fills_in_the_payment_and_nothing_else():
    one = replace(CAPTURE, transaction_id="", payment_amount=700)
    later = replace(one, transaction_id="T9")

    filled_in = {"transaction_id": "T9", "payment_amount": 700}
    assert told(later, bound=folded([terms_of(one), filled_in])) == ""
    assert "its transaction id is T9" in told(later, bound=terms_of(one))


def test_details_that_were_erased_with_the_end_are_no_change():
    """A final payout has none any more; an open one that lost them was changed."""
    bound = terms_of(PAYOUT)
    lost = terms_of(replace(PAYOUT, sealed=""))

    for state, words in (("confirmed", ""), ("approved", "its sealed is another one")):
        own = {"state": state}
        assert words in difference(INSTRUCTION, lost | own, then=bound | own)
        assert bool(words) == bool(difference(INSTRUCTION, lost | own, then=bound | own))


def test_the_id_of_a_payout_request_is_bound_and_of_nothing_else():
    """It is made for every instruction and sent with payouts."""
    for item, words in ((PAYOUT, "its gateway request id is X1"), (CAPTURE, "")):
        changed_id = replace(item, gateway_request_id="X1")
        row = {name: getattr(changed_id, name) for name in Instruction.__dataclass_fields__}
        now = folded([cells_of(INSTRUCTION, row)])
        found = difference(INSTRUCTION, now, then=terms_of(item))
        assert (words in found, bool(found)) == (True, bool(words)), found


def test_amounts_are_told_as_money_and_long_texts_not_at_all():
    """A controller sees at once what was approved; what a text said is not spread."""
    assert "its amount is 500.00 EUR, bound was 5.00 EUR" in told(
        replace(PAYOUT, amount=50_000), bound=terms_of(PAYOUT)
    )
    long = hashlib.sha256(b"a").hexdigest()
    assert "its payee digest is another one" in told(
        replace(PAYOUT, payee_digest=long), bound=terms_of(PAYOUT)
    )
    assert "its natural key" not in told(replace(PAYOUT, natural_key="x"), bound=terms_of(PAYOUT))
