"""What is known of a file of orders, and which of its rows stand, beside the rule row by row."""

import hashlib
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts, frame_of
from recon.model.business_date import BusinessCalendar
from recon.model.nights import Mode, NightRequest
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.proof import ledger_bridge
from recon.steps.files.arrived_rows import EVER, orders_lack_since
from recon.steps.files.incomplete import WHOLE_FILE, absent_sha256
from recon.store.nights import facts_rows, order_rows, runs, stored_orders
from recon.store.nights.facts_rows import facts_problems
from recon.store.nights.stored_orders import StoredOrders
from tests.recon.store.stored_files import save, sender_of

OPENING = datetime(2026, 1, 1, tzinfo=UTC)
AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
ORDER = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "order_no": "A-1",
    "currency": "EUR",
    "amount": 10_000,
    "status": "paid",
    "ordered_at": "2026-11-20T10:00:00Z",
    "line": 2,
}


class Shop:
    """Order files of an account, kept and looked at as its night does."""

    def __init__(self, store, run, storages):
        self.store, self.run, self.storages = store, run, storages

    def load(self, *rows, name="orders.csv", rejects=()):
        frame, good, bad = frame_of(rows, columns=ORDER_COLUMNS), len(rows), len(rejects)
        sha256 = hashlib.sha256(f"{rows}-{rejects}".encode()).hexdigest()
        source = SourceFile(SourceKind.ORDERS, name, sha256, 1, good + bad, good, bad, 0)
        save(self.store, self.run, frame, source=source, rejects=rejects, storages=self.storages)
        return sha256

    def current(self):
        with self.store.reading() as connection:
            frame = StoredOrders(connection, self.run, self.storages).since(OPENING)
        cells = zip(frame["order_no"], frame["amount"], frame["source"], strict=True)
        return [(str(key), int(amount), str(source)) for key, amount, source in cells]

    def known(self, *, name="orders.csv", sha256):
        with self.store.reading() as connection:
            return order_rows.known_file(connection, self.run, name=name, sha256=sha256)

    def files(self):
        with self.store.reading() as connection:
            return order_rows.files_of_night(connection, self.run)

    def copy(self, of, name):
        with self.store.writing() as connection:
            return order_rows.save_copy(
                connection, self.run, of=of, name=name, sender=sender_of(self.run, name), at=AS_OF
            )


@pytest.fixture
def shop(store, run, storages):
    return Shop(store, run, storages)


def test_accounts_may_have_names_as_long_as_they_come(store, storages):
    """Whose inbox a file lay in names merchant and account together."""
    merchant, account = "M" * 50, "A" * 50
    request = NightRequest(merchant, account, AS_OF.date(), Mode.LIVE)
    with store.writing() as connection:
        runs.start(connection, request, run_id="long", as_of=AS_OF, now=AS_OF)
        run = runs.get(connection, "long")
    Shop(store, run, storages).load({**ORDER, "merchant_id": merchant, "account_id": account})

    with store.reading() as connection:
        senders = [file.sender for file in facts_rows.every(connection)]
    assert senders == [f"{merchant}/{account}/orders.csv"]


def test_lost_rows_that_several_files_brought_are_told_once(shop, tmp_path):
    """A content that is known under another name lies in the archive once."""
    shop.load(ORDER)
    ((known, _),) = shop.files()
    shop.copy(known, "again.csv")
    with shop.store.reading() as connection:
        both = facts_rows.every(connection)
    (tmp_path / "archive" / both[0].rows.path).unlink()

    assert len(both) == 2
    assert len([*facts_problems(both, storages=shop.storages)]) == 1


def test_known_content_under_a_new_name_is_an_arrival_of_no_row(shop):
    """It is a file of the night, and its rows stand once the other file is corrected."""
    sha256 = shop.load(ORDER)
    ((first, _),) = shop.files()
    copy = shop.copy(first, "b.csv")
    assert shop.known(name="b.csv", sha256=sha256) == copy
    assert shop.known(name="c.csv", sha256=sha256) == first
    assert [(file.name, file.rows_skipped, counts.accepted) for file, counts in shop.files()] == [
        ("b.csv", 1, 0),
        ("orders.csv", 0, 1),
    ]
    assert shop.current() == [("A-1", 10_000, "orders.csv")]

    shop.load({**ORDER, "amount": 9_000})
    assert shop.known(name="b.csv", sha256=sha256) == copy
    assert sorted(shop.current()) == [("A-1", 9_000, "orders.csv"), ("A-1", 10_000, "b.csv")]


def test_a_file_of_the_same_name_in_another_inbox_corrects_nothing(shop):
    """Another inbox is another sender: both rows stand, and a person decides."""
    shop.load(ORDER)
    other = Shop(shop.store, replace(shop.run, account_id="100042002"), shop.storages)
    other.load({**ORDER, "amount": 9_000})

    assert [amount for _, amount, _ in shop.current()] == [10_000, 9_000]


SINCE = datetime(2026, 10, 21, tzinfo=UTC)
LONG_AGO = "2026-01-01T00:00:00Z"
DECLARED = frozenset({("100042", "100042001"), ("100042", "100042002")})


def _order(order_no, amount=100, **cells):
    return {**ORDER, "order_no": order_no, "amount": amount, **cells}


def _steps(orders):
    """What became of the rows; of those from before the window F's is compared."""
    view = orders.in_view(since=SINCE, queried=pa.array(["F"])).to_pylist()
    older = Counter(row["file_id"] for row in view if row["ordered_at"] < SINCE)
    return orders.steps(older, since=SINCE, declared=DECLARED)


def test_each_row_leaves_by_one_step(shop):
    shop.load(_order("A"), _order("B"), name="a.csv")
    shop.load(
        _order("A"),
        _order("B", 200),
        _order("C", account_id="100042002"),
        _order("D", account_id="100042009"),
        _order("E", ordered_at=LONG_AGO),
        _order("F", ordered_at=LONG_AGO),
        name="a.csv",
    )
    with shop.store.reading() as connection:
        first, now = (StoredOrders(connection, shop.run, shop.storages, until) for until in (1, 2))
        found, as_first_read = (_steps(orders) for orders in (now, first))
        nobodys = now.undeclared_accounts(DECLARED)

    # A is the row of the first version still; B's successor, and F which is asked about, are new.
    assert found.steps == {
        ledger_bridge.REPEATS: -1,
        ledger_bridge.REPLACED: 0,
        ledger_bridge.OTHER_ACCOUNTS: -1,
        ledger_bridge.UNDECLARED: -1,
        ledger_bridge.BEFORE_WINDOW: -1,
        ledger_bridge.KNOWN_BEFORE: 1,
    }
    assert not any(as_first_read.steps.values())
    assert found.taken == {"a.csv": LoadCounts(accepted=6, new=4, repeat=1, superseding=1)}
    assert nobodys == ["100042/100042009"]


NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
TONIGHT = date(2026, 11, 20)
SFTP = "sftp://shop"


def covered(day):
    return datetime(2026, 11, day + 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "since"),
    [
        pytest.param([(20, "a-1", True)], None, id="complete"),
        pytest.param([], EVER, id="none ever"),
        pytest.param([(18, "a-1", True)], covered(18), id="none tonight"),
        pytest.param([(20, "a-1", False)], EVER, id="refused, nothing before"),
        pytest.param([(18, "a-1", True), (20, "a-2", False)], covered(18), id="refused"),
        pytest.param([(18, "a", True), (20, "a", False)], covered(18), id="refused, one name"),
        pytest.param([(20, "a", False), (20, "a", True)], None, id="mended under its name"),
        pytest.param(
            [(19, "a-1", True), (20, "a-2", True), (18, "b-1", True), (20, "b-2", False)],
            covered(18),
            id="of one sender",
        ),
        pytest.param(
            [(18, "a-1", True), (19, "a-2", False), (20, "b-1", True)],
            covered(18),
            id="refused yesterday, nothing since",
        ),
        pytest.param(
            [(18, "a-1", True), (19, "a-2", False), (20, "a-3", True)],
            None,
            id="refused yesterday, its sender delivered since",
        ),
        pytest.param(
            [(19, "readme", False), (20, "a-1", True)], None, id="refused yesterday, of nobody"
        ),
        pytest.param([(19, "a-1", True), (20, SFTP, False)], covered(19), id="a folder elsewhere"),
    ],
)
def test_payments_may_lack_their_order_since_the_last_complete_file(told, since, store, run):
    """Of the sender whose file is refused tonight, or of all where none has come."""
    with store.writing() as connection:
        for number, (day, name, is_read) in enumerate(told):
            sha256 = absent_sha256(str(number)) if name == SFTP else f"{number}".rjust(64, "f")
            order_rows.insert_file(
                connection,
                replace(run, business_date=date(2026, 11, day)),
                rejects=[Reject(SourceKind.ORDERS, name, 0, WHOLE_FILE, "unread", "")][is_read:],
                source=SourceFile(
                    SourceKind.ORDERS, name, sha256, 1, 1, int(is_read), int(not is_read), 0
                ),
                at=NOW,
            )

    assert run.business_date == TONIGHT
    with store.reading() as connection:
        found = orders_lack_since(connection, run, until=10**9, calendar=BusinessCalendar.of())
    assert found == since


DAY_0 = datetime(2026, 11, 1, tzinfo=UTC)
ACCOUNTS = ("100042001", "100042002")
ROWS_OF_A_FILE, FILES = 12, 6


class Row(NamedTuple):
    account: str
    order_no: str
    amount: int
    day: int
    changed: int | None
    file: int


def _cells(row):
    at = {"ordered_at": (DAY_0 + timedelta(days=row.day)).isoformat()}
    if row.changed is not None:
        at["updated_at"] = (DAY_0 + timedelta(days=row.changed)).isoformat()
    place = {"merchant_id": "100042", "account_id": row.account, "line": 2, "currency": "EUR"}
    return {**place, **at, "order_no": row.order_no, "amount": row.amount, "status": "paid"}


def _standing(files):
    """What stands after these files, by the rule, one row after another."""
    words = [row for _, rows in files for row in rows]
    left = [row for row in words if not _is_over(row, words=words, files=files)]
    stands: dict[tuple[Any, ...], Row] = {}
    for row in left:
        newest = max(_age(other) for other in left if other[:2] == row[:2])
        if _age(row) == newest:
            stands.setdefault(row[:5], row)
    return [*stands.values()]


def _age(row):
    return -1 if row.changed is None else row.changed


def _is_over(row, *, words, files):
    """Whether a newer file of its name speaks anew of its order, and does not say it is older."""
    again = [
        other
        for other in words
        if other[:2] == row[:2]
        and other.file > row.file
        and files[other.file][0] == files[row.file][0]
    ]
    versions = {other.file for other in again}
    if versions == {other.file for other in again if other[:5] == row[:5]}:
        return False
    changes = [other.changed for other in again]
    if row.changed is None or None in changes:
        return True
    return max(change for change in changes if change is not None) >= row.changed


def _numbers(columns):
    return {number for column in columns for number in column.to_pylist()}


def _of(frame, *names):
    return sorted(zip(*(frame[name] for name in names), strict=True))


@pytest.mark.parametrize("few_rows", [0, stored_orders.FEW_ROWS])
@pytest.mark.parametrize("seed", range(4))
def test_every_question_is_answered_as_the_rule_says(
    store, run, storages, monkeypatch, seed, few_rows
):
    """By window, number, age and lateness, now and as of each file, of files in any order.

    Of few rows all are looked up at once, of many no more than is asked for.
    """
    monkeypatch.setattr(stored_orders, "FEW_ROWS", few_rows)
    chance = random.Random(seed)
    files = []
    for number in range(FILES):
        rows = [
            Row(
                chance.choice(ACCOUNTS),
                f"O-{chance.randrange(8)}",
                chance.randrange(2),
                chance.randrange(number, number + 3),
                chance.choice((None, 1, 2)),
                number,
            )
            for _ in range(ROWS_OF_A_FILE)
        ]
        files.append((chance.choice("ab"), rows))
    for number, (name, rows) in enumerate(files):
        frame = frame_of([_cells(row) for row in rows], columns=ORDER_COLUMNS)
        source = SourceFile(SourceKind.ORDERS, name, f"{number}", 1, len(rows), len(rows), 0, 0)
        save(store, run, frame.iloc[:5], frame.iloc[5:], source=source, storages=storages)
    after = [_standing(files[: number + 1]) for number in range(FILES)]
    mine = [row for row in after[-1] if row.account == run.account_id]
    days = [DAY_0 + timedelta(days=day) for day in range(FILES + 3)]
    with store.reading() as connection:
        ids = [each.file_id for each in facts_rows.every(connection)]
        assert [*facts_problems(facts_rows.every(connection), storages=storages)] == []
        for until, stands in enumerate(after):
            then = StoredOrders(connection, run, storages, ids[until])
            for day in (0, 3, 6):
                frame = then.since(days[day])
                assert _of(frame, "order_no", "amount", "source") == sorted(
                    (row.order_no, row.amount, files[row.file][0])
                    for row in stands
                    if row.account == run.account_id and row.day >= day
                )
            by_key = then.of_keys(ACCOUNTS, order_nos=["O-1", "O-5", "O-99"])
            assert _of(by_key, "account_id", "order_no", "amount") == sorted(
                (row.account, row.order_no, row.amount)
                for row in stands
                if row.order_no in {"O-1", "O-5"}
            )
        orders = StoredOrders(connection, run, storages)
        since = _numbers(orders.numbers(spans=[(days[4], None)]))
        late = _numbers(orders.numbers(behind=ids[2], spans=[(days[1], days[5])]))
        between = _numbers(orders.numbers(spans=[(days[1], days[3]), (days[6], days[7])]))
        nothing = _numbers(orders.numbers(spans=[]))
        unknown = orders.named(["O-99"])
        view = orders.in_view(since=days[6], queried=pa.array(["O-1"]))

    assert since == {row.order_no for row in mine if row.day >= 4}
    assert late == {row.order_no for row in mine if row.file > 2 and 1 <= row.day < 5}
    assert between == {row.order_no for row in mine if row.day in {1, 2, 6}}
    assert nothing == set()
    assert unknown.num_rows == 0
    seen = {"O-1", *(row.order_no for row in mine if row.day >= 6)}
    assert sorted(
        zip(view["order_no"].to_pylist(), view["amount"].to_pylist(), strict=True)
    ) == sorted((row.order_no, row.amount) for row in mine if row.order_no in seen)
