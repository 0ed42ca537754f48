"""Two nights of one account: journals are handed out once, booked, and `diff` says what changed."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import insert, select, update

from recon.model.errors import UsageError
from recon.model.money import Money
from recon.model.resolutions import WRITE_OFF
from recon.month.journal_exports import WRITTEN_OFF, HandOut, export_of_night, journals_out
from recon.steps.compare.what_if import difference
from recon.steps.night.report import figures_of
from recon.steps.runtime.night_folder import StoredResult
from recon.store.nights import journal_rows, runs
from recon.store.schema import break_answer, history
from recon.store.schema import run as run_table
from tests.recon.steps.compare.written_night import newest

RULES = """
[grace]
gateway_to_ledger = "1h"
[journal.accounts]
clearing = "1360"
sales = "8400"
refunds = "8700"
chargebacks = "6930"
payouts = "1200"
"""
NEXT_DATE = "2026-11-21"

pytestmark = pytest.mark.xdist_group("journals of a night")
"""They begin with one night, which is played once."""


def handed_out(merchant, run_id, *, out, again=()):
    """`recon journals --out`."""
    with merchant.environment() as environment:
        wanted = HandOut(out, again=again)
        return export_of_night(run_id, hand_out=wanted, environment=environment)


def figures_of_newest(merchant):
    """What the workbook of the newest night shows."""
    run_id = newest(merchant).run_id
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run, result = (
                runs.get(connection, run_id),
                StoredResult(connection, run_id, environment).whole(),
            )
        return figures_of(run, result=result, environment=environment)


def proposed(merchant, run_id):
    """The journals of a run, the state of those handed out, and its totals T14."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        result = StoredResult(connection, run_id, environment).whole()
        states = journal_rows.states(connection, result.journals["journal_id"])
        return result, states, [one for one in result.control_totals if one.id == "T14"]


def book(merchant, payment):
    """The ledger learns of the capture."""
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        cells = ["L1", "100042", "100042001", payment.order_no, "capture", payment.currency]
        ledger.write(",".join([*cells, payment.amount, payment.ordered_at]) + "\n")


def ask_write_off(merchant, break_id, *, run_id, agreed_by=""):
    """A person asks for it in the workbook; with a second name it is agreed."""
    answer = {
        **{column.name: "" for column in break_answer.columns if column.name != "answer_id"},
        "break_id": break_id,
        "run_id": run_id,
        "merchant_id": "100042",
        "account_id": "100042001",
        "resolution": WRITE_OFF,
        "waits": not agreed_by,
        "agreed_by": agreed_by,
        "agreed_at": None,
        "given_at": datetime(2026, 11, 21, tzinfo=UTC),
        "version": 1,
        "sheet_row": 1,
        "scope": "This break",
        "exposure": 1,
    }
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(insert(break_answer).values(answer))


def without_booking(merchant):
    """One captured payment that the ledger lacks, and the first night over it."""
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + RULES)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()


@pytest.fixture
def unbooked(begun):
    """A merchant after that night, and the payment."""
    merchant = begun(without_booking)
    return merchant, merchant.payments("captured")[0]


def test_a_journal_is_handed_out_once_and_booked_when_the_ledger_shows_it(unbooked, tmp_path):
    """Proposed, exported, never proposed again, booked; and the two nights differ by the ledger."""
    merchant, payment = unbooked
    first = newest(merchant).run_id

    handed = handed_out(merchant, first, out=tmp_path / "out")
    again = handed_out(merchant, first, out=tmp_path / "out")

    assert (handed.journals, again.journals, again.exported_before) == (1, 0, 1)
    lines = handed.paths[0].read_text().splitlines()
    assert [line.split(",")[3] for line in lines[1:]] == ["1360", "8400"]
    result, states, fourteen = proposed(merchant, first)
    assert result.breaks["code"].tolist() == ["MISSING_IN_LEDGER"]
    assert list(states.values()) == ["exported"]
    assert {total.passed for total in fourteen} == {True}

    book(merchant, payment)
    merchant.wait(hours=24)
    merchant.night(date=NEXT_DATE)
    second = newest(merchant).run_id
    with merchant.environment() as environment:
        found = difference(first, NEXT_DATE, environment=environment)
        with environment.store.reading() as connection:
            booked = journal_rows.states(connection, states)
    after, _, _ = proposed(merchant, second)

    assert list(booked.values()) == ["booked"]
    assert after.movements["movement"].tolist() == ["matched late"]
    (change,) = found.changes
    assert (change.before, change.after) == ("MISSING_IN_LEDGER", "matched")
    assert change.why.startswith("ledger: nothing -> ")
    assert found.same_rules


def test_what_closed_some_nights_ago_opens_again_under_the_next_number(unbooked):
    """Each night seals what it was told of ended breaks, and tells the next one that and its own.

    Without books nobody knows whether the second one ended: it is out of sight, and returns.
    """
    merchant, payment = unbooked
    ledger = merchant.folder / "ledger.csv"
    unbooked_yet = ledger.read_text()
    moved, ids = list[list[str]](), list[list[str]]()
    book(merchant, payment)
    booked = ledger.read_text()
    for day, text in enumerate((booked, booked, unbooked_yet, "", unbooked_yet), start=21):
        ledger.write_text(text)
        merchant.wait(hours=24)
        merchant.night(date=f"2026-11-{day}")
        result, _, _ = proposed(merchant, newest(merchant).run_id)
        moved.append(result.movements["movement"].tolist())
        ids.append(result.breaks["break_id"].tolist())

    assert moved == [["matched late"], [], ["reopened"], ["not seen"], ["returned"]]
    assert ids[2] == ids[4] != []


def test_what_is_out_and_not_in_the_books_is_listed_until_they_show_it(unbooked, tmp_path):
    """By command and on the Journals sheet of every later night, with amount, day and order."""
    merchant, payment = unbooked
    first = newest(merchant).run_id
    with merchant.environment() as environment:
        before = journals_out(environment)
    handed = handed_out(merchant, first, out=tmp_path / "out")
    name = handed.paths[0].read_text().splitlines()[1].split(",")[1]
    with merchant.environment() as environment:
        (out,) = journals_out(environment)
    merchant.wait(hours=24)
    merchant.night(date=NEXT_DATE)
    (listed,) = figures_of_newest(merchant).handed_out

    assert before == []
    assert (out.kind, out.day, out.format) == ("permanent", "2026-11-20", "csv")
    assert (out.journal_id, out.order_no, out.exported_of) == (name, payment.order_no, first)
    assert Money.of_minor_units(out.amount, currency=out.currency).amount == Decimal(payment.amount)
    assert (listed.journal_id, listed.order_no) == (name, payment.order_no)
    assert (listed.amount, listed.exported_at) == (out.amount, out.exported_at)

    book(merchant, payment)
    merchant.wait(hours=24)
    merchant.night(date="2026-11-22")
    with merchant.environment() as environment:
        assert journals_out(environment) == []
    assert figures_of_newest(merchant).handed_out == ()


def test_a_lost_file_is_written_again_by_name_and_the_history_says_so(unbooked, tmp_path):
    """The same journals under the same ids, so that an import refuses what it has."""
    merchant, _ = unbooked
    run_id = newest(merchant).run_id
    first = handed_out(merchant, run_id, out=tmp_path / "out").paths[0].read_text()
    name = first.splitlines()[1].split(",")[1]
    again = handed_out(merchant, run_id, out=tmp_path / "out", again=(name,))
    with merchant.environment() as environment, environment.store.reading() as connection:
        events = [
            row.event
            for row in connection.execute(select(history))
            if (row.entity, row.entity_id) == ("journal", name)
        ]

    assert again.paths[0].name == f"journals-{run_id}-again.csv"
    assert again.paths[0].read_text() == first
    assert events == ["exported", "exported again"]
    with pytest.raises(UsageError, match="was never handed out"):
        handed_out(merchant, run_id, out=tmp_path / "out", again=("unknown-EUR-1",))


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [("mode", "dry-run", "was a dry run"), ("verdict", "NOT PROVEN", "is NOT PROVEN")],
)
def test_only_live_and_proven_nights_hand_journals_out(unbooked, tmp_path, column, value, told):
    """Amounts that nobody proved are not booked."""
    merchant, _ = unbooked
    run_id = newest(merchant).run_id
    merchant.as_owner(update(run_table).values({column: value}))
    with merchant.environment() as environment, pytest.raises(UsageError, match=told):
        export_of_night(run_id, hand_out=HandOut(tmp_path / "out"), environment=environment)

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("agreed_by", ["", "second"], ids=["asked", "agreed"])
def test_a_break_that_is_written_off_keeps_its_journal_back(unbooked, tmp_path, agreed_by):
    """Since the night a person asked for a write-off: booking it as well would count it twice."""
    merchant, _ = unbooked
    run_id = newest(merchant).run_id
    result, _, _ = proposed(merchant, run_id)
    ask_write_off(merchant, result.breaks["break_id"].iloc[0], run_id=run_id, agreed_by=agreed_by)
    with merchant.environment() as environment:
        handed = export_of_night(
            run_id, hand_out=HandOut(tmp_path / "out"), environment=environment
        )

    assert handed.paths == ()
    assert handed.held_back_journals == {result.journals["journal_id"].iloc[0]: WRITTEN_OFF}


def test_only_the_newest_night_hands_journals_out(unbooked, tmp_path):
    """Yesterday's proposals may be booked by now."""
    merchant, _ = unbooked
    first = newest(merchant).run_id
    merchant.wait(hours=24)
    merchant.night(date=NEXT_DATE)

    with pytest.raises(UsageError, match="is not the newest"):
        handed_out(merchant, first, out=tmp_path / "out")
    with (
        merchant.environment() as environment,
        pytest.raises(UsageError, match="no finished night"),
    ):
        difference(first, "2020-01-01", environment=environment)
