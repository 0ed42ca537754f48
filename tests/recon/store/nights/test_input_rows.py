from dataclasses import fields, replace
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import text, update

from recon.matching.frames.sources import (
    ORDER_COLUMNS,
    AgreedWriteOffs,
    LoadCounts,
    frame_of,
)
from recon.model.nights import Mode, NightRequest
from recon.model.terms import InstructionKind, InstructionState, SourceFile, SourceKind
from recon.store.database.history import Event, append
from recon.store.money import sending_rows
from recon.store.nights import answer_parts, facts_rows, input_rows, runs
from recon.store.nights.answer_parts import BASELINE, AnswerPart
from recon.store.nights.input_rows import Inputs, StoredInputs
from recon.store.schema import instruction
from tests.recon.store.scripted import CAPTURE, planned
from tests.recon.store.stored_files import save

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
INPUTS = Inputs(
    rules_digest="a" * 64,
    previous_run_id="before",
    last_file=3,
    product_version="1",
    siblings=("100042002",),
)


def test_what_a_run_read_is_what_its_newest_inputs_were_bound_with(store, run):
    def bound(inputs):
        sealed = {"step": "inputs", input_rows.READ: input_rows.document(inputs)}
        for data in (sealed, {"step": "compared"}):
            append(connection, [Event("run", run.run_id, runs.SEALED, data)], at=AT)
        return input_rows.load(connection, run.run_id)

    with store.writing() as connection:
        first, second = bound(INPUTS), bound(replace(INPUTS, last_file=4))
        missing = input_rows.load(connection, "another")

    saved = {each.name: getattr(INPUTS, each.name) for each in fields(StoredInputs)}
    assert first == StoredInputs(**saved)
    assert second == StoredInputs(**saved | {"last_file": 4})
    assert missing is None


def test_an_account_of_any_length_takes_write_offs_over_once(store, run):
    """Names of fifty characters each, and the word that stands between them.

    What counts is what the run found that ended first; one that died after it compared has none.
    """
    with store.writing() as connection:
        for day, name in enumerate(("died", "first", "later"), start=1):
            night = NightRequest("M" * 50, "A" * 50, date(2026, 11, day), Mode.LIVE)
            runs.start(connection, night, run_id=name, as_of=AT, now=AT)
            agreed = AgreedWriteOffs(entries={name: ("EUR", day)})
            long = runs.get(connection, name)
            found = input_rows.found_written_off(connection, long, agreed=agreed)
            told = runs.result_event(name, values={}, event=runs.RECONCILED, details=found)
            append(connection, [told], at=AT)
            if name != "died":
                input_rows.take_over(connection, name, at=AT)

    with store.reading() as connection:
        long = runs.get(connection, "first")
        assert input_rows.taken_over(connection, long) == {"first": ("EUR", 2)}
        assert input_rows.taken_over(connection, run) is None


PART = AnswerPart(
    run_id="r1",
    phase=BASELINE,
    merchant_id="100042",
    account_id="100042001",
    path="nights/100042/100042001/2026-11-20/r1/answers-1/replies-00002.parquet",
    schema_label="replies/1",
    sha256="5",
    size_bytes=7,
    row_count=2,
    answered=2,
    last_at=AT,
)
ASKED = replace(PART, schema_label="asked/1", asked=3, answered=0, row_count=3, last_at=None)


def _save(store, *parts, charged_back=()):
    with store.writing() as connection:
        for part in parts:
            answer_parts.save(connection, part, charged_back=charged_back)


def test_files_are_found_by_run_and_by_account_in_the_order_of_coming(store, run):
    """Lists of keys are no answers, and what was asked before a link is left out."""
    later = replace(PART, run_id="r2", path="later", asked_after=9)
    other = replace(PART, account_id="100042002", path="other")
    _save(store, ASKED, PART, later, other)
    with store.reading() as connection:
        of_run = answer_parts.of_run(connection, run.run_id)
        of_account = answer_parts.of_account(connection, run)
        since = answer_parts.of_account(connection, run, after=9)
        newest = answer_parts.newest(connection)
        counted = answer_parts.counted(connection, run.run_id, phase=BASELINE)

    assert [part.schema_label for part in of_run] == ["asked/1", "replies/1", "replies/1"]
    assert [part.path for part in of_account] == [PART.path, "later"]
    assert [part.path for part in since] == ["later"]
    assert (newest, counted) == (len({ASKED, PART, later, other}), (3, 4))
    entry = of_account[0].entry
    assert f"{of_account[0].folder}/{entry.name}" == PART.path
    assert (entry.rows, entry.bytes, entry.sha256) == (2, 7, "5")


@pytest.mark.parametrize(
    ("codes", "until", "own", "found"),
    [
        (["4000"], 9, "r2", ["A", "B"]),
        (["4000"], 1, "r2", ["A"]),
        (["5000"], 9, "r2", []),
        (["4000"], 9, "r1", ["B"]),
    ],
)
def test_an_order_was_charged_back_once_an_earlier_answer_said_so(
    codes, until, own, found, store, run
):
    """By one of the codes, in another run, in a file that the run still reads; each order once."""
    _save(store, PART, charged_back=(("A", "4000"), ("A", "4000")))
    _save(store, replace(PART, run_id="r0", path="b"), charged_back=(("A", "4000"), ("B", "4000")))
    asking = replace(run, run_id=own)
    with store.reading() as connection:
        keys = answer_parts.charged_back_keys(connection, asking, codes=codes, until=until)

    assert keys["order_no"].tolist() == found


def test_files_whose_codes_the_rules_took_otherwise_are_named(store, run):
    """A code that became a chargeback since is looked up where it was shown, and nowhere else."""
    shown = replace(PART, run_id="r0", codes='{"payment_status": {"4000": [1, "A"]}}')
    known = replace(shown, path="known", chargeback_codes="4000")
    silent = replace(PART, run_id="r0", path="silent")
    _save(store, shown, known, silent, replace(shown, run_id=run.run_id))
    with store.reading() as connection:
        parts = answer_parts.read_otherwise(connection, run, codes=["4000", "4001"], until=9)
        none = answer_parts.read_otherwise(connection, run, codes=["4000"], until=0)

    assert [part.path for part in parts] == [shown.path]
    assert none == []


def _file(store, run, storages):
    order = {
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "currency": "EUR",
        "amount": 1_000,
        "status": "paid",
        "ordered_at": "2026-11-20T10:00:00Z",
        "line": 2,
    }
    orders = frame_of(
        [{**order, "order_no": key} for key in ("A", "B", "B")], columns=ORDER_COLUMNS
    )
    source = SourceFile(SourceKind.ORDERS, "orders.csv", "sha", 9, 3, 3, 0, 0)
    save(store, run, orders, source=source, storages=storages)


@pytest.mark.parametrize(
    ("change", "accepted", "new"),
    [("SELECT 1", 3, 3), ("DELETE FROM order_facts", 3, 0)],
)
def test_what_is_stored_of_a_file_is_counted_by_itself(store, run, storages, change, accepted, new):
    _file(store, run, storages)
    with store.writing() as connection:
        connection.execute(text(change))
        files = facts_rows.of_night(connection, run)
        in_facts = facts_rows.stored_rows(files, storages=storages)
        stored = sending_rows.stored_of_files(connection, run, in_facts=in_facts)

    assert stored == {"orders.csv (1)": LoadCounts(accepted, new, 0, 0)}


REFUND = InstructionKind.REFUND
DOUBT, NOT_DONE = InstructionState.IN_DOUBT, InstructionState.RESOLVED_NOT_APPLIED


def test_what_may_have_moved_of_payments_is_told_doubt_included(store, run):
    """Neither what was planned nor what surely did not happen, nor what is of no payment."""
    kinds = (InstructionKind.CAPTURE, REFUND)
    actions = (
        replace(CAPTURE, transaction_id="T1", kind=kind, action_amount=600, request_id=f"R-{kind}")
        for kind in kinds
    )
    planned(store, run, *actions)
    told = []
    for state in (None, DOUBT, NOT_DONE):
        with store.writing() as connection:
            if state is not None:
                values = {"state": state.value, "payment_amount": 1_000}
                connection.execute(update(instruction).values(values))
            told.append(sending_rows.moved_of_payments(connection, run).to_numpy().tolist())
    with store.writing() as connection:
        connection.execute(update(instruction).values(state=DOUBT.value, transaction_id=""))
        told.append(sending_rows.moved_of_payments(connection, run).to_numpy().tolist())

    assert told == [[], [["T1", kind, 600, 1_000] for kind in kinds], [], []]
