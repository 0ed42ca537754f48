"""Rows forged, changed or taken away past the code: found before money moves.

Campaign `forged-rows` plays FORGED_ROWS of them in an order of chance; `make test-nights` plays
every column of every table once, and every way to add or take away a row.
"""

import os
import random
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from recon.desk.endorsement import Kind
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.errors import StoreError
from recon.model.terms import SourceFile, SourceKind
from recon.steps.admin.verify import verify
from recon.steps.files.ingest import ingest
from recon.steps.money import gate
from recon.steps.money.gate import gate_of
from recon.steps.runtime.night_folder import storages_of
from recon.store.database.record import ATTESTED_TABLES, BEFORE_MONEY
from recon.store.money import case_rows, sending_rows
from recon.store.money.instruction_rows import find
from recon.store.nights import runs
from recon.store.schema.columns import metadata
from tests.recon.store import decided
from tests.recon.store.stored_files import keep_lines

from .test_bound import UNREAD, approve_it

CASES = int(os.environ.get("FORGED_ROWS", "0"))
"""0: each column of each table once."""
FOUND = (
    *("sending_switch", "contradiction"),
    *("instruction", "history", "order_action", "run", "endorsement"),
    *("order_facts", "order_facts_account"),
)
"""Tables of which each forged row is found."""
WAITING = {"order_action": "instruction_id = ''"}
"""Rows that a night still reads; the others have become instructions, which are bound there."""
EXEMPT = {
    **{
        (bound.table.name, column): why
        for bound in ATTESTED_TABLES
        for column, why in bound.free.items()
    },
    ("instruction", "gateway_request_id"): "bound with payouts, which alone are sent with it",
    ("order_action", "action_id"): "a number that says only which row came first",
    ("order_action", "instruction_id"): "WEAK: it hides what a file asked for, and moves nothing",
    ("endorsement", "key_id"): "the signature is tried with the key that counts, whatever it says",
}
"""Columns whose forging is not found, and why it moves no money."""
NOT_BOUND = {
    "order_file": "counts tie (T1, T2); names, hashes and rows of a night's files are not bound",
    "reject": "counts tie (T1); its words are for people",
    "answer_part": "its files are bound by name, hash and rows, its counts tie (T3)",
    "charged_back_order": "digested with the result when the night has compared; not before",
    "batch": "its claim and end are events; its other columns are not compared with them",
    "attempt": "what left and came back, kept for people; states come from events",
    "notification": "signed by the gateway, the signature is not checked again when it is read",
    "run_source": "WEAK: whose ledger says what was charged back, where a run has read none itself",
}
"""Tables that money is judged by and that the history does not bind row by row; that nothing moves
unasked or twice, whatever is written to the first of them, is played by
`tests/model/test_unbound_rows.py`."""
JUDGES_NO_MONEY = {
    **dict.fromkeys(
        ("bank_entry", "bank_statement"),
        "what is compared after money moved; the night's folder has it under its hash",
    ),
    **dict.fromkeys(
        ("control_total", "result_summary", "rules_version"),
        "what a night found, and who made it; a run's verdict and digests are bound",
    ),
    **dict.fromkeys(
        ("break_answer", "answer_file", "reject_end"),
        "people's words about breaks, rows and workbooks: the desk endorses what decides",
    ),
    **dict.fromkeys(
        ("used_code", "wrong_code"), "the desk keeps its own in a file; here at the sandbox only"
    ),
    **dict.fromkeys(("exported_journal", "notification_case"), "for people; nothing is sent by it"),
}
"""Tables by which nothing is sent, and why."""


KEYS = frozenset({"position", "sequence", "turn"})


def said(merchant):
    """Two people approved a refund, and something of each other kind was decided."""
    approve_it(merchant)
    ask_for_more(merchant)
    notify_of_lines(merchant)
    now = merchant.clock()
    both, until = ("Jo Ahn", "Kim Bell"), now + timedelta(days=3)
    with merchant.environment() as environment, environment.store.writing() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
        (refund,) = find(connection)
        own = refund.instruction_id
        for stop in (True, False):
            sending_rows.turn_switch(connection, stop=stop, by="Jo Ahn", reason="a drill", at=now)
        decided.said(connection, Kind.ALLOW_SENDING, "1", *both, at=now, until=until)
        case_rows.open_case(connection, refund, reason="the gateway shows less", at=now)
        case_rows.close_case(connection, own, verdict="applied", reason="seen by two", at=now)
        verdict = {"verdict": "applied", "evidence": "bank statement"}
        decided.said(connection, Kind.DECISION, own, *both, at=now, says=verdict)
        decided.said(connection, Kind.DECISION, own, "Jo Ahn", at=now, says=verdict)
        back = {"of": "decision"}
        decided.said(connection, Kind.TAKEN_BACK, own, "Jo Ahn", at=now, says=back)
        decided.said(connection, Kind.RELEASE, run.run_id, "Kim Bell", at=now, until=until)


def ask_for_more(merchant):
    """A file with two refunds, which were read and are not planned."""
    two = [one for one in merchant.payments("captured") if one.currency == "EUR"][1:3]
    asked = {"status": "partially_refunded", "refund_amount": "1.00", "action_amount": "1.00"}
    rows = [merchant.order(one, action="refund", **asked) for one in two]
    merchant.drop("waiting.csv", *rows)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = runs.newest_live(connection, ("100042", "100042001"))
        ingest(run.run_id, environment=environment)


def notify_of_lines(merchant):
    """A settlement file."""
    plain = {"batch_id": "B1", "merchant_id": "100042", "account_id": "100042001", "line": 2}
    plain |= {"settled_on": "2026-11-20", "currency": "EUR", "order_no": "A", "fee": 0}
    rows = [
        {**plain, "entry_type": entry_type, "gross": gross, "net": gross}
        for entry_type, gross in (("capture", 100), ("chargeback", -100))
    ]
    lines = frame_of(rows, columns=SETTLEMENT_COLUMNS)
    source = SourceFile(SourceKind.SETTLEMENT, "settlement/S1", "s", 9, 2, 2, 0, 0)
    run = night_of(merchant)
    with merchant.environment() as environment:
        storages = storages_of(environment)
        keep_lines(environment.store, run, lines, source=source, storages=storages)


def night_of(merchant):
    """The run that is about to send, as it began: what is forged later changes it no more."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
    assert run is not None
    return run


def problems(merchant, run):
    """What the gate before money and `recon verify` say."""
    with merchant.environment() as environment:
        closed = gate_of(run, environment=environment).closed_because
        named = verify(environment, reading=UNREAD).problems
        return {"the gate": {closed} - {""}, "verify": {*named}}


def everywhere(path):
    """Every (table, column or kind of forging, row) that there is."""
    places = []
    with closing(sqlite3.connect(path)) as connection:
        for table in FOUND:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            which = WAITING.get(table, "1 = 1")
            query = f"SELECT rowid FROM {table} WHERE {which}"  # noqa: S608 - ours
            rows = [row[0] for row in connection.execute(query)]
            assert rows, table
            for row in rows:
                kinds = [name for name in names if (table, name) not in EXEMPT]
                places += [(table, kind, row) for kind in (*kinds, "DELETE", "INSERT")]
    return places


def forge(path, place):
    """One forging, by whoever has the database's file."""
    table, kind, row = place
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        if kind == "DELETE":
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))  # noqa: S608 - ours
        elif kind == "INSERT":
            _insert_like(connection, table, row)
        else:
            (before,) = connection.execute(
                f"SELECT {kind} FROM {table} WHERE rowid = ?",  # noqa: S608 - ours
                (row,),
            ).fetchone()
            connection.execute(
                f"UPDATE {table} SET {kind} = ? WHERE rowid = ?",  # noqa: S608 - ours
                (_other(before, kind), row),
            )
        connection.commit()


def _insert_like(connection, table, row):
    """A new row like another one, under a key of its own."""
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    values = list(connection.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone())  # noqa: S608 - ours
    for at, column in enumerate(columns):
        if column[5]:  # of the primary key
            values[at] = values[at] + 1_000 if isinstance(values[at], int) else f"{values[at]}x"
        if (table, column[1]) == ("instruction", "natural_key"):
            values[at] = f"{values[at]}x"
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - ours


def _other(before, name):
    if name.endswith(("_at", "_until")) or name == "at":
        return "2026-11-21 01:02:03.000000"
    if name == "data":
        return before.replace("{", '{"x":1,', 1) if before != "{}" else '{"x":1}'
    if isinstance(before, int):
        flag = before in {0, 1} and name not in KEYS
        return 1 - before if flag else before + 1_000
    return f"{before or ''}x"


def unfound(merchant, place, *, run, before):
    """A forging, and who does not find it; "" when both do."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as true:
        kept = sqlite3.connect(":memory:")
        true.backup(kept)
    verified = merchant.folder / "reports" / "history-verified.json"
    verified.unlink(missing_ok=True)
    forge(merchant.sqlite_path, place)
    try:
        now = problems(merchant, run)
        blind = [who for who in now if not now[who] - before[who]]
        return f"{place}: not found by {' and '.join(blind)}" if blind else ""
    except (StoreError, ValueError):
        return ""  # it cannot even be read: the night ends before money
    finally:
        with closing(sqlite3.connect(merchant.sqlite_path)) as again:
            kept.backup(again)
        kept.close()


def test_of_every_table_it_is_said_what_a_forged_row_does():
    """It is found, it moves no money, or nothing is sent by it: a new table is one of them."""
    known = sorted(metadata.tables)
    assert sorted([*FOUND, *NOT_BOUND, *JUDGES_NO_MONEY]) == known


def test_forged_rows_are_found_before_money_moves(begun):
    """Changed in any column, added or taken away: gate and `recon verify` both say so."""
    merchant = begun(said)
    run = night_of(merchant)
    before = problems(merchant, run)
    assert before == {"the gate": set(), "verify": set()}
    places = everywhere(merchant.sqlite_path)
    chance = random.Random("forged rows")
    chance.shuffle(places)
    once = list({place[:2]: place for place in places}.values())
    wanted = [places[number % len(places)] for number in range(CASES)] or once
    found = [unfound(merchant, place, run=run, before=before) for place in wanted]
    missed = [one for one in found if one]
    assert missed == [], "\n".join(missed)
    assert problems(merchant, run) == before


@pytest.mark.parametrize("blind", BEFORE_MONEY, ids=lambda bound: bound.table.name)
def test_a_gate_that_leaves_a_table_out_does_not_name_its_forged_row(begun, monkeypatch, blind):
    """No other control finds it: the comparison with the audit log does."""
    merchant = begun(said)
    run = night_of(merchant)
    name = blind.table.name
    places = everywhere(merchant.sqlite_path)
    forge(merchant.sqlite_path, next(place for place in places if place[0] == name))
    start = f"the history does not hold: {name.replace('_', ' ')} "
    (found,) = problems(merchant, run)["the gate"]
    left = tuple(bound for bound in BEFORE_MONEY if bound is not blind)
    monkeypatch.setattr(gate, "BEFORE_MONEY", left)
    unfound_now = problems(merchant, run)["the gate"]

    assert found.startswith(start)
    assert not any(one.startswith(start) for one in unfound_now)
