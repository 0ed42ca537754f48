"""What the gateway answered, in files of the night's folder: written once, bound, read again."""

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter

import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import update

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import find_sealed
from recon.instructions.queries import KeyAnswers
from recon.matching.frames.sources import LEDGER_COLUMNS, frame_of
from recon.model.errors import ArchiveBrokenError, ArchiveError
from recon.model.terms import GatewayState, KeyAnswer, SourceFile, SourceKind
from recon.model.uptime import NEVER_READ
from recon.proof.ledger_bridge import sums_by_type
from recon.proof.night_tables import frame_of_table, table_of
from recon.steps.money.gate import gate_of
from recon.steps.night import whole_night as night
from recon.steps.night.report import risk_reported
from recon.steps.runtime import gateway_answers
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import (
    EVERY_COLUMN,
    GatewayAnswers,
    Moment,
    observed_of,
    reply_rows,
)
from recon.steps.runtime.night_folder import (
    LEDGER_STEP,
    StoredLedger,
    links,
    record_sealed,
    storage_of,
    sums_of_entries,
    write_ledger,
)
from recon.store.nights import journal_rows, runs
from recon.store.nights.answer_parts import AFTER, BASELINE, sibling_phase
from recon.store.nights.runs import Run
from recon.store.schema import answer_part
from tests.recon.steps.conftest import capture, plain_workbooks

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
ASKED_AFTER = 7
"""A link of the history."""


FOUND, ABSENT = (KeyAnswer.FOUND, ""), (KeyAnswer.NOT_FOUND, "")
SILENT = (KeyAnswer.FAILED, "silence")


def payment(key, **changed):
    """What an answer shows of an order's payment."""
    return {
        "order_no": key,
        "transaction_id": f"T-{key}",
        "currency": "EUR",
        "amount": 1_000,
        "payment_status": "2000",
        "query_result": "1",
        "reference_no": "",
        "transaction_date": AT,
        "queried_at": AT,
        "detail": '{"risk": {}}',
        **changed,
    }


@dataclass
class Asking:
    """A run that asks."""

    run: Run
    environment: Environment

    def ask(self, *keys, phase=BASELINE):
        """Note keys; those that wait."""
        run, environment = self.run, self.environment
        waiting = gateway_answers.note_queried(run, phase=phase, keys=keys, environment=environment)
        return waiting.to_pylist()

    def keep(self, said, *payments, phase=BASELINE, account=""):
        """Keep answers."""
        got, asked = KeyAnswers(said, payments), Moment(AT, NEVER_READ, ASKED_AFTER)
        rows = reply_rows(self.run, got, sent=asked, phase=phase, account_id=account)
        gateway_answers.save(self.run, rows, environment=self.environment)

    def seal(self):
        """End the query."""
        gateway_answers.seal(self.run, environment=self.environment)

    def told(self, question, *words, **options):
        """The answer to a question, from what is committed now."""
        with self.environment.store.reading() as connection:
            answers = GatewayAnswers(connection, self.run, self.environment)
            return getattr(answers, question)(*words, **options)

    def rows(self):
        """Order, answer and status of the newest answers, sorted."""
        frame = self.told("gateway_frame")
        columns = (frame[name] for name in ("order_no", "answer", "payment_status"))
        return sorted(zip(*columns, strict=True))

    def evidence(self, order_no, after):
        """What sealed answers say of an order."""
        return self.told("evidence", order_no, after=after)

    def seen(self, order_no, after):
        """The same of its payment."""
        rows = self.evidence(order_no, after)
        rules = self.environment.settings.rules
        return observed_of(rows, transaction_id=f"T-{order_no}", rules=rules)

    def unbound(self):
        """Why money would wait."""
        with self.environment.store.reading() as connection:
            return gateway_answers.unbound(connection, self.run, environment=self.environment)


def test_a_file_of_keys_that_counts_as_answers_is_refused_by_name(asking):
    """Somebody changed past the code which files have answers: a sentence, whatever is asked."""
    asking.ask("A-1", "A-2")
    with asking.environment.store.writing() as connection:
        connection.execute(update(answer_part).values(answered=2))

    for columns in (["answer"], ["transaction_id", "payment_status"], EVERY_COLUMN):
        with pytest.raises(ArchiveBrokenError, match=r"it holds none, .*backup"):
            asking.told("rows", columns=columns)
    with pytest.raises(ArchiveBrokenError, match="it holds none"):
        asking.told("statuses_reported", ["T-1"])


@pytest.fixture
def asking(merchant):
    """A night of the merchant that has begun."""
    with begun(merchant) as it:
        yield it


@contextmanager
def begun(merchant):
    """A night that has begun."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        yield Asking(run, environment)


def archive_beside(asking, merchant):
    """Where the night's folder lies: beside the database of a file, else beside the reports."""
    stands = asking.environment.store.path or merchant.folder / "reports" / "of.sqlite"
    return stands.parent / "archive"


def test_only_unanswered_keys_are_asked_again(asking):
    """A restart asks for what has no final answer, and notes each key once."""
    asking.ask("A", "B")
    asking.keep({"A": FOUND}, payment("A"))

    assert asking.ask("A", "B", "C") == ["B", "C"]
    keys = asking.told("queried_keys")
    assert sorted(keys.to_pylist()) == ["A", "B", "C"]


def test_a_file_without_its_row_is_nobodys(asking, merchant):
    """What was written when the process died is written again, and sealed only as it is named."""
    asking.ask("A")
    asking.keep({"A": FOUND}, payment("A"))
    (path,) = archive_beside(asking, merchant).glob("**/replies-*.parquet")
    path.with_name("replies-00003.parquet").write_bytes(b"half of it")
    path.with_name("replies-00009.parquet").write_bytes(b"half of it")
    asking.keep({"B": ABSENT})
    asking.seal()

    assert asking.rows() == [("A", "found", "2000"), ("B", "not_found", "")]
    assert asking.unbound() == ""
    assert not path.with_name("replies-00009.parquet").exists()


def test_an_answer_kept_again_takes_the_place_of_the_first(asking):
    """The same key answered twice in a phase leaves one set of payments."""
    asking.keep({"A": FOUND, "B": FOUND}, payment("A"), payment("B"))
    asking.keep({"A": FOUND}, payment("A", payment_status="3000"))

    assert asking.rows() == [("A", "found", "3000"), ("B", "found", "2000")]


def test_what_a_later_answer_takes_back_is_shown_to_nobody(asking):
    """Whoever looks for a payment finds what the newest answer about its order says, not more."""
    asking.keep({"A": FOUND, "B": FOUND}, payment("A"), payment("B"))
    asking.keep({"A": FOUND}, payment("A", transaction_id="T-new"))
    payments = ["T-A", "T-B", "T-new"]

    assert asking.told("statuses_reported", payments) == {
        "T-B": ["2000"],
        "T-new": ["2000"],
    }
    shown = asking.told("payments", {"A"})
    assert [row["transaction_id"] for row in shown] == ["T-new"]
    assert asking.told("before_money", {"A", "Z"}) == {"A": "found"}


def test_the_answer_after_money_counts(asking):
    """The engine sees the newest phase of each key, and keys without a payment as rows."""
    asking.keep({"A": FOUND, "B": ABSENT, "C": SILENT}, payment("A"))
    asking.keep({"A": FOUND}, payment("A", payment_status="3000"), phase=AFTER)
    failed = asking.told("failed_keys")
    counts, why = asking.told("failures")

    assert asking.rows() == [("A", "found", "3000"), ("B", "not_found", ""), ("C", "failed", "")]
    assert (failed, counts, why) == (
        {"C"},
        {"found": 1, "not_found": 1, "failed": 1},
        ["silence"],
    )


@pytest.mark.parametrize("columns", [["answer"], ["detail", "queried_at"], ["order_no"]])
def test_some_columns_of_the_answers_say_what_all_of_them_say(asking, columns):
    """Also of a key that was answered twice in a phase, and again after money moved."""
    asking.ask("A1", "A2", "A3")
    asking.keep({"A1": FOUND, "A2": SILENT}, payment("A1"))
    asking.keep({"A1": FOUND, "A3": ABSENT}, payment("A1", detail='{"risk": {"a": 1}}'))
    asking.ask("A1", phase=AFTER)
    asking.keep({"A1": FOUND}, payment("A1", payment_status="2100"), phase=AFTER)

    whole, some = (asking.told("newest", **options) for options in ({}, {"columns": columns}))
    assert some.select(columns).to_pylist() == whole.select(columns).to_pylist()
    assert whole.num_rows == 3
    assert len(some.column_names) < len(whole.column_names)


def test_another_accounts_answers_stay_apart(asking):
    """What another account showed is no payment of this account and no part of its universe."""
    other = "100042002"
    asking.ask("A")
    asking.keep({"A": ABSENT})
    said = {"A": FOUND, "B": ABSENT, "C": SILENT}
    asking.keep(said, payment("A"), phase=sibling_phase(other), account=other)
    sibling = asking.told("sibling_frame")
    columns = (sibling[name] for name in ("account_id", "order_no", "answer"))

    assert asking.rows() == [("A", "not_found", "")]
    assert sorted(zip(*columns, strict=True)) == [
        (other, "A", "found"),
        (other, "B", "not_found"),
    ]


def test_payments_are_shown_by_order_transaction_and_status(asking):
    """One transaction in another order's answer counts beside; two are not the only payment."""
    asking.keep(
        {"A": FOUND, "B": FOUND, "C": FOUND},
        payment("A"),
        payment("B", transaction_id="T-A", payment_status="4100"),
        payment("C"),
        payment("C", transaction_id="T-C2", detail='{"risk": {"risk_score": "82"}}'),
    )
    of_a = asking.told("payments", {"A"})
    only = asking.told("only_payments", {"A", "C", "Z"})
    payments = ["T-A", "T-C", "T-Z"]
    statuses = asking.told("statuses_reported", payments)
    risks = asking.told("risks_reported", ["T-C2", "T-Z"])
    others = asking.told("risks_reported", ["T-C"])
    dates = asking.told("authorised_at", {"A", "Z"})
    orders = asking.told("orders_of", {"T-A", "T9"})

    assert [(row["order_no"], row["amount"]) for row in of_a] == [("A", 1_000), ("B", 1_000)]
    assert only == {"A": "T-A"}
    assert statuses == {"T-A": ["2000", "4100"], "T-C": ["2000"]}
    assert asking.told("statuses_reported", []) == {}
    assert risk_reported(risks) == {"T-C2": "score 82"}
    assert others == []
    assert dates == {"A": AT}
    assert orders == {"A", "B"}


def test_only_sealed_answers_that_were_asked_after_a_link_are_evidence(asking):
    """What no history binds could be anybody's; once bound, its place in the history decides.

    That place stands in the sealed file: what the database says beside it makes none younger.
    """
    asking.keep({"A": FOUND, "B": ABSENT}, payment("A"))
    before = asking.evidence("A", ASKED_AFTER)
    asking.seal()
    shown, absent = ([*asking.seen(key, ASKED_AFTER)] for key in "AB")
    with asking.environment.store.writing() as connection:
        connection.execute(update(answer_part).values(asked_after=ASKED_AFTER + 9))

    assert before == []
    assert [(one.state, one.queried_at, one.uptime) for one in shown] == [
        (GatewayState.AUTHORISED, AT, NEVER_READ)
    ]
    assert [one.state for one in absent] == [GatewayState.NONE]
    assert asking.evidence("A", ASKED_AFTER + 1) == []


def test_answers_that_come_after_the_seal_are_a_step_of_their_own(asking):
    """Nothing sealed is opened again, and until it is bound, too, money waits."""
    asking.ask("A")
    asking.keep({"A": FOUND}, payment("A"))
    asking.seal()
    first = asking.unbound()
    asking.keep({"A": FOUND}, payment("A", payment_status="3000"), phase=AFTER)
    between = asking.unbound()
    asking.seal()
    asking.seal()

    assert (first, asking.unbound()) == ("", "")
    assert "answers-2/replies-00003.parquet is not what the history binds" in between
    with asking.environment.store.reading() as connection:
        steps = [link.step for link in links(connection, asking.run.run_id)]
    assert steps == ["answers-1", "answers-2"]


CHANGES = (
    ("UPDATE answer_part SET sha256 = 'x' WHERE asked = 0", ArchiveBrokenError),
    (
        "UPDATE answer_part SET path = replace(path, '2.par', '1.par') WHERE asked = 0",
        ArchiveBrokenError,
    ),
    ("DELETE FROM answer_part WHERE asked = 0", None),
    ("UPDATE answer_part SET asked = asked - 1 WHERE asked > 0", None),
)


@pytest.mark.parametrize(("change", "refused"), CHANGES)
def test_rows_that_were_changed_past_the_code_are_refused(change, refused, merchant):
    """A file that is not the bound one is never read, and before money each change is told."""
    with begun(merchant) as asking:
        asking.ask("A")
        asking.keep({"A": FOUND}, payment("A"))
        asking.seal()
    merchant.as_owner(change)
    with merchant.environment() as environment, environment.store.reading() as connection:
        (run,) = runs.newest_of_accounts(connection)
        later = Asking(run, environment)

        assert later.unbound() != ""
        assert later.unbound() in gate_of(run, environment=environment).closed_because
        if refused is not None:
            with pytest.raises(refused, match="put the night's folder back"):
                later.rows()


def test_a_file_that_was_changed_is_refused_by_name(merchant):
    """One byte less, and the sentence says which file and what to do."""
    with begun(merchant) as asking:
        asking.keep({"A": FOUND}, payment("A"))
        asking.seal()
        (path,) = archive_beside(asking, merchant).glob("**/replies-*.parquet")
        path.write_bytes(path.read_bytes()[:-1])

        with pytest.raises(ArchiveBrokenError, match=r"replies-00001.parquet is not in the arch"):
            asking.rows()


SOURCE = SourceFile(SourceKind.LEDGER, "ledger.csv", "abc", 10, 2, 2, 0, 0)
ACCOUNT = {"merchant_id": "100042", "account_id": "100042001"}


def entry(number, **changed):
    """One entry of the ledger."""
    return {
        **ACCOUNT,
        "entry_id": f"L-{number}",
        "order_no": f"A-{number}",
        "entry_type": "capture",
        "currency": "EUR",
        "amount": 500 + number,
        "booked_at": "2026-11-20T10:00:00.123456Z",
        "transaction_id": f"T-{number}",
        "source": "ledger.csv",
        "line": 1 + number,
        **changed,
    }


def keep(asking, entries):
    """Keep these books for the run, as the query does."""
    frame = frame_of(entries, columns=LEDGER_COLUMNS)
    entries = table_of(frame, name="ledger")
    sealed = write_ledger(asking.run, entries=entries, environment=asking.environment)
    with asking.environment.store.writing() as connection:
        journal_rows.save(connection, asking.run.run_id, source=SOURCE)
        record_sealed(connection, asking.run, sealed=[sealed], environment=asking.environment)
    return frame


def told(asking, question):
    """The answer to a question about the ledger as the run read them."""
    with asking.environment.store.reading() as connection:
        return question(StoredLedger(connection, asking.run, asking.environment))


def every_entry(ledger):
    """All that they have, as the file has it."""
    columns = SCHEMAS["ledger"].columns
    tables = [table.cast(columns) for table in ledger.batches(columns.names)]
    return pa.concat_tables([columns.empty_table(), *tables])


def the_file(asking, merchant):
    """Where the ledger of the run lies."""
    (path,) = archive_beside(asking, merchant).glob(f"**/{asking.run.run_id}/ledger/ledger.parquet")
    return path


ODD = entry(1, entry_type="adjustment", amount=-500, transaction_amount=0, reference_no='a "b", c')


def test_books_come_back_whole_in_place_of_an_earlier_attempt(merchant):
    """Entries of every account and age, blanks and signs; what was bound before stays beside it."""
    with begun(merchant) as asking:
        none = told(asking, attrgetter("source"))
        keep(asking, [entry(9)])
        frame = keep(asking, [ODD, entry(2), entry(3, account_id="100042002", amount=2**62)])
        source, entries = (told(asking, attrgetter("source")), told(asking, every_entry))
        with asking.environment.store.reading() as connection:
            bound = [
                link for link in links(connection, asking.run.run_id) if link.step == LEDGER_STEP
            ]
        storage = storage_of(asking.run, environment=asking.environment)
        folders = [
            find_sealed(
                storage, night=link.folder.rpartition("/")[0], step=LEDGER_STEP, sha256=link.sha256
            )
            for link in bound
        ]

    assert none is None
    assert source == SOURCE
    pd.testing.assert_frame_equal(frame_of_table(entries), frame)
    assert [each.folder.rpartition("/")[2] for each in folders if each] == [
        "ledger.superseded-1",
        "ledger",
    ]


def test_the_money_of_books_is_added_up_by_arrow(merchant):
    """By type and currency, as the plain frame comes to it."""
    with begun(merchant) as asking:
        frame = keep(asking, [ODD, entry(2), entry(3), entry(4, currency="GBP")])
        sums = sums_of_entries(told(asking, every_entry))

    assert sums == sums_by_type(frame)
    assert sums["capture", "EUR"] == 1_005


BACK = {"entry_type": "chargeback"}


def test_what_was_charged_back_is_asked_of_the_runs_own_books(merchant):
    """Reversals count against it, money in the payment's currency, other accounts not at all.

    A row taken away in the database hides none of it.
    """
    paid = {"transaction_currency": "USD", "transaction_amount": 700}
    with begun(merchant) as asking:
        keep(
            asking,
            [
                entry(1, **BACK, amount=500),
                entry(2, **BACK, order_no="A-1", transaction_id="T-1", amount=300),
                entry(3, order_no="A-1", transaction_id="T-1", entry_type="chargeback_reversal"),
                entry(4, **BACK, **paid),
                entry(5, **BACK, account_id="100042002"),
                entry(6),
            ],
        )
        asked = [told(asking, StoredLedger.charged_back)]
        merchant.as_owner("DELETE FROM run_source")
        asked.append(told(asking, StoredLedger.charged_back))

    assert asked == [{("A-1", "T-1", "EUR"): 297, ("A-4", "T-4", "USD"): 700}] * 2


def test_a_run_that_read_no_books_asks_the_newest_that_any_did(merchant):
    """A chargeback that was booked once is not forgotten where the ledger cannot be read."""
    with begun(merchant) as asking:
        keep(asking, [entry(1, **BACK)])
    merchant.as_owner("UPDATE run SET status = 'finished'")
    with begun(merchant) as later:
        keep_of_others = told(later, StoredLedger.charged_back)

    assert keep_of_others == {("A-1", "T-1", "EUR"): 501}


@pytest.mark.parametrize("how", ["cut", "other", "gone", "unbound"])
def test_books_that_were_changed_are_refused(how, merchant):
    """A byte less, another run's file, none at all, or a row that says books were read."""
    with begun(merchant) as asking:
        if how != "unbound":
            keep(asking, [entry(1)])
            path = the_file(asking, merchant)
        match how:
            case "cut":
                path.write_bytes(path.read_bytes()[:-1])
            case "other":
                path.write_bytes(path.read_bytes()[::-1])
            case "gone":
                path.unlink()
            case _:
                with asking.environment.store.writing() as connection:
                    journal_rows.save(connection, asking.run.run_id, source=SOURCE)
        with pytest.raises(ArchiveBrokenError, match=r"ledger/ledger\.parquet|binds no ledger"):
            told(asking, every_entry)


def _walk(asking, *names):
    night.walk(
        names,
        asking.run.run_id,
        environment=asking.environment,
        workbooks=plain_workbooks(),
        progress=lambda _: None,
    )


def test_books_that_change_behind_the_query_send_nothing(merchant):
    """The night stops before its first claim: a chargeback taken out of them lets nothing pass."""
    capture(merchant)
    with begun(merchant) as asking:
        _walk(asking, "ingest", "query")
        path = the_file(asking, merchant)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(ArchiveError, match=r"ledger/ledger\.parquet has \d+ bytes, and was"):
            _walk(asking, "settle")

    assert merchant.effects() == []


def test_an_archive_that_takes_no_books_stops_the_night(merchant):
    """Nothing is asked and nothing is sent; the sentence says what to do."""
    capture(merchant)
    with begun(merchant) as asking:
        _walk(asking, "ingest")
        nights = archive_beside(asking, merchant) / "nights"
        nights.write_bytes(b"no folder")
        with pytest.raises(ArchiveError, match="so nothing was sent: make the archive writable"):
            _walk(asking, "query")

    assert merchant.effects() == []
