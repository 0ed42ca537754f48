import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, LoadCounts, frame_of
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.store.nights import bank_rows, settlement_rows
from recon.store.nights.settlement_rows import (
    OLDER,
    NamedPayments,
    Settlements,
)
from tests.recon.store.stored_files import keep_lines

WHOLE = "(whole file)"


class Settled:
    """Settlement files of an account, kept and asked as its night does."""

    def __init__(self, store, run, storages):
        self.store, self.run, self.storages = store, run, storages

    def of(self, **changed):
        return Settled(self.store, replace(self.run, **changed), self.storages)

    def save(self, name, *lines, bad=""):
        """Store a file; `bad` is why it stands for something that is not there."""
        rejects = [Reject(SourceKind.SETTLEMENT, name, 0, WHOLE, bad, "")] if bad else []
        self.keep(name, *({**self.plain, **one} for one in lines), rejects=rejects)

    @property
    def plain(self):
        plain = {"batch_id": "B1", "settled_on": "2026-11-20", "entry_type": "capture"}
        place = {"merchant_id": self.run.merchant_id, "account_id": self.run.account_id}
        return {**plain, **place, "currency": "EUR", "gross": 100, "fee": 1, "net": 99, "line": 2}

    def keep(self, name, *rows, rejects=()):
        frame, size = frame_of(rows, columns=SETTLEMENT_COLUMNS), len(rows)
        sha256 = hashlib.sha256(str(rows).encode()).hexdigest()
        source = SourceFile(SourceKind.SETTLEMENT, name, sha256, 9, size, size, 0, 0)
        keep_lines(
            self.store, self.run, frame, source=source, storages=self.storages, rejects=rejects
        )

    @contextmanager
    def asked(self, *, until=None):
        with self.store.reading() as connection:
            yield Settlements(connection, self.run, self.storages, until)

    def days(self, *, until=None):
        with self.asked(until=until) as settlements:
            frame = settlements.volumes(since="2026-11-01")
        names = ("settled_on", "entry_type", "late", "base")
        return [*zip(*(frame[name].tolist() for name in names), strict=True)]

    def paid_out(self, *accounts):
        with self.store.reading() as connection:
            return bank_rows.payouts_of(
                connection, self.run, accounts=accounts, storages=self.storages, until=None
            )


@pytest.fixture
def settled(store, run, storages):
    return Settled(store, run, storages)


def test_a_line_counts_as_often_as_one_file_tells_it(settled):
    """Two of the same in one file are two movements, whichever file came first."""
    settled.save("settlement/1", {"order_no": "A"})
    settled.save("settlement/2", *({"order_no": "A"},) * 2)
    with settled.asked(until=2) as asked:
        counts = settlement_rows.repeat_counts(asked.connection, asked.counted().repeats)
    assert counts == {"settlement/2": LoadCounts(2, 1, 1, 0)}


@pytest.mark.parametrize(
    "other",
    [
        *({name: "Z"} for name in ("batch_id", "order_no", "transaction_id", "reference_no")),
        *({"own_reference": "Z"}, {"settled_on": "2026-11-19"}, {"entry_type": "refund"}),
        *({"currency": "SEK"}, {"gross": 7}, {"fee": 7}, {"net": 7}),
    ],
)
def test_a_line_that_differs_in_any_column_is_a_movement_of_its_own(settled, other):
    """Only its number in the file and its tariff make it no other one."""
    settled.save("settlement/1", {})
    settled.save("settlement/2", other)
    with settled.asked() as asked:
        assert asked.counted().repeats.num_rows == 0


def test_what_is_charged_back_and_paid_out_is_counted_once(settled):
    """Whichever files tell it, and as often as one of them does."""
    back = {"entry_type": "chargeback", "transaction_id": "T", "gross": -100, "net": -101}
    paid = {"entry_type": "payout", "gross": 50, "fee": 0, "net": 50}
    given_back = {**back, "entry_type": "chargeback_reversal", "gross": 10}
    named_payments = {**paid, "own_reference": "ours"}
    other = {**back, "account_id": "100042002"}
    settled.save("settlement/1", back, paid, given_back)
    settled.save("settlement/2", back, back, paid, {**back, "gross": -30})
    settled.save("settlement/3", named_payments, {"transaction_id": "T"}, other)
    with settled.asked() as asked:
        assert asked.charged_back() == {("T", "EUR"): 220}
    paid_out = settled.paid_out(settled.run.account)
    assert paid_out[["net", "source"]].to_numpy().tolist() == [[50, "settlement/1"]]


def test_pay_outs_of_a_file_that_lies_in_two_inboxes_count_for_each_account(settled):
    other = settled.of(account_id="100042002")
    paid = {"entry_type": "payout", "gross": 50, "fee": 0, "net": 50}
    both = tuple(
        {**paid, "account_id": each.run.account_id, "net": net}
        for each, net in ((settled, 50), (other, 70))
    )
    settled.save("settlement/1", *both)
    other.save("settlement/1", *both)
    paid_out = settled.paid_out(settled.run.account, other.run.account)
    assert paid_out[["account_id", "net"]].to_numpy().tolist() == [
        [settled.run.account_id, 50],
        [other.run.account_id, 70],
    ]


def test_batches_are_those_of_every_version_and_of_whichever_inbox(settled):
    """An entry of the bank may name any; lines of other accounts name none of this one's."""
    other = settled.of(account_id="100042002")
    settled.save("settlement/1", {"batch_id": "old"})
    settled.save("settlement/1", {"batch_id": "new"})
    others = {"batch_id": "theirs", "account_id": other.run.account_id}
    beside = {"batch_id": "beside", "account_id": settled.run.account_id}
    other.save("settlement/2", beside, others)
    with settled.asked() as asked:
        batches = bank_rows.batch_ids(
            asked.connection, accounts=[asked.run.account], storages=asked.storages
        )
    assert batches == {"old", "new", "beside"}


def test_a_line_that_names_no_batch_may_be_of_any_that_its_file_tells_of(settled):
    """In its currency; one that names its batch is of that one."""
    rejects = [
        Reject(SourceKind.SETTLEMENT, "settlement/1", 4, "gross", "no number", "x", **cells)
        for cells in ({"currency": "EUR"}, {"currency": "SEK", "batch_id": "B9"})
    ]
    lines = ({**settled.plain, "batch_id": each} for each in ("B1", "B2"))
    settled.keep("settlement/1", *lines, rejects=rejects)
    settled.save("settlement/2", {"batch_id": "B3"})
    with settled.asked() as asked:
        unread = asked.unread_batches(siblings=[])
    assert unread == {("EUR", ""), ("EUR", "B1"), ("EUR", "B2"), ("SEK", "B9")}


def test_what_lines_tell_of_is_known_by_name_and_day(settled):
    """The order of a line, or its transaction where it names none; of older ones the first day."""
    lines = ({"order_no": "A", "settled_on": "2026-01-01"}, {"order_no": "D"}, {"order_no": ""})
    settled.save("settlement/1", *({**line, "transaction_id": "T"} for line in lines))
    with settled.asked() as asked:
        assert asked.days_reported() == ("2026-01-01", "2026-11-20")
        orders, transactions = asked.names(since="2026-11-01")
        assert (orders.to_pylist(), transactions) == (["D"], {"T"})


def test_what_is_missing_is_missing_until_it_comes_right(settled):
    """On whichever night: the newest version of its name decides."""
    later = settled.of(business_date=date(2026, 11, 21))
    settled.save("settlement/1", bad="is not there")
    later.save("settlement/2", bad="is not there")
    with later.asked() as asked:
        missing = asked.missing(whole_file=WHOLE)
    days = settled.run.business_date, later.run.business_date
    assert missing == [(days[0], "settlement/1"), (days[1], "settlement/2")]
    later.save("settlement/1", {"order_no": "A"})
    with later.asked() as asked, later.asked(until=2) as earlier:
        assert asked.missing(whole_file=WHOLE) == missing[1:]
        assert earlier.missing(whole_file=WHOLE) == missing


def test_evidence_is_found_by_transaction_and_by_our_own_reference(settled):
    """Each alone is enough; a line that has neither is not told."""
    lines = (
        {"transaction_id": "T", "reference_no": "by transaction"},
        {"own_reference": "ours", "reference_no": "by reference"},
        {"transaction_id": "other", "own_reference": "", "reference_no": "neither"},
    )
    settled.save("settlement/1", *lines)
    settled.save("settlement/2", *lines[:2])
    with settled.asked() as asked:
        both, alone, none = (
            asked.evidence(transactions=each, references=ours)
            for each, ours in (({"T", ""}, {"ours", ""}), ({""}, {"ours"}), ({""}, {""}))
        )

    assert [each.reference_no for each in both] == ["by transaction", "by reference"]
    assert [each.reference_no for each in alone] == ["by reference"]
    assert none == []


def test_days_are_summed_up_by_what_the_newest_files_tell(settled):
    lines = (
        {"order_no": "A"},
        {"order_no": "B"},
        {"order_no": "A", "entry_type": "refund", "gross": -30},
        {"entry_type": "payout"},
        {"order_no": "O", "settled_on": "2026-10-31"},
    )
    settled.save("settlement/1", *lines)
    settled.save("settlement/2", lines[0])
    assert settled.days() == [
        ("2026-11-20", "capture", 0, 200),
        ("2026-11-20", "refund", 0, 30),
    ]


def test_late_is_what_tells_of_days_that_were_told_before(settled):
    """Of the files of the business date; as of an earlier file it is not there yet."""
    before = settled.of(business_date=date(2026, 11, 19))
    before.save("settlement/1", {"order_no": "A", "settled_on": "2026-11-18"})
    late, new = {"settled_on": "2026-11-17"}, {"settled_on": "2026-11-19"}
    settled.save("settlement/2", {"order_no": "B", **late}, {"order_no": "C", **new})
    assert settled.days(until=1) == [("2026-11-18", "capture", 0, 100)]
    assert settled.days() == [
        ("2026-11-17", "capture", 1, 100),
        ("2026-11-18", "capture", 0, 100),
        ("2026-11-19", "capture", 0, 100),
    ]


OLD = {"settled_on": "2026-01-01"}
LINES: tuple[dict[str, object], ...] = (
    {"order_no": "A", **OLD},
    {"order_no": "B", "method": "card", **OLD},
    {"order_no": "B", "transaction_id": "T", "brand": "visa", **OLD},
    {"entry_type": "payout", **OLD},
    {"entry_type": "refund", "order_no": "A", **OLD},
    {"order_no": "D"},
    {"order_no": "E", "region": "EEA"},
    {"entry_type": "payout"},
)


def test_only_lines_of_some_types_or_with_some_text_are_asked_for(settled):
    settled.save("settlement/1", *LINES)
    with settled.asked() as settlements:
        lines = settlements.lines(since="2026-11-01", payments=NamedPayments.of(["A"], ["T"]))
        paid = lines.table(["settled_on"], entry_types=["payout"])
        days = paid["settled_on"].to_pylist()
        told = lines.table(["order_no", "source"], with_text=["brand", "region"]).to_pylist()

    assert days == ["2026-01-01", "2026-11-20"]
    assert told == [{"order_no": each, "source": "settlement/1"} for each in ("B", "E")]


SINCE = "2026-11-10"
TYPES = ("capture", "refund", "fee", "payout", "reserve", "reserve_reversal", "chargeback")
Line = dict[str, Any]


def some_lines(chance, run, *, name):
    """Lines of a file, most of them older than the window; some name nothing."""
    return [
        {
            "batch_id": f"B{chance.randrange(3)}",
            "merchant_id": run.merchant_id,
            "account_id": chance.choice((run.account_id, run.account_id, "another")),
            "settled_on": f"2026-11-{chance.randrange(1, 13):02}",
            "entry_type": chance.choice(TYPES),
            "order_no": chance.choice(("", "", *"ABCDEF")),
            "transaction_id": chance.choice(("", "", *"ABCDEF")),
            "reference_no": f"{name}-{at}",
            "own_reference": chance.choice(("", "", "ours")),
            "method": chance.choice(("", "card")),
            "brand": chance.choice(("", "visa")),
            "currency": chance.choice(("EUR", "SEK")),
            "gross": chance.randrange(-900, 900),
            "fee": chance.choice((0, 3)),
            "net": chance.randrange(-900, 900),
            "line": at,
        }
        for at in range(chance.randrange(9))
    ]


def modelled(files, run, *, asked, by_payment):
    newest = dict(files)
    last = {name: at for at, (name, _) in enumerate(files)}
    counted = Counter[str]()
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    older, recent = [], []
    for name in sorted(newest, key=lambda each: last[each]):
        reported_here = Counter[str]()
        for line in newest[name]:
            same = str([line[each] for each in sorted({*line} - {"line", "method", "brand"})])
            reported_here[same] += 1
            if line["account_id"] != run.account_id or reported_here[same] <= counted[same]:
                continue
            counted[same] += 1
            told = _row({**line, "source": f"settlement/{name}"})
            is_asked = any(line[key] and line[key] in asked[key] for key in asked)
            if line["settled_on"] >= SINCE:
                recent.append(told)
            elif is_asked and line["entry_type"] != "payout":
                older.append(told)
            else:
                for at, amount in enumerate(("gross", "fee", "net")):
                    sums[_group(line, by_payment=by_payment)][at] += line[amount]
    summed = [
        _row({**dict(key), **dict(zip(("gross", "fee", "net"), amounts, strict=True))})
        for key, amounts in sums.items()
    ]
    return [*sorted(summed), *older, *recent]


def _group(line, *, by_payment):
    kind = "earlier"
    if line["entry_type"] == "payout" and not line["own_reference"]:
        kind = "payout"
    elif line["entry_type"].startswith("reserve"):
        kind = "reserve"
    names = ("merchant_id", "account_id", "batch_id", "settled_on", "currency")
    cells = {name: line[name] for name in names} | {"entry_type": kind, "source": OLDER}
    if by_payment and kind == "earlier" and line["fee"]:
        cells |= {name: line[name] for name in ("order_no", "transaction_id")}
    return tuple(sorted(cells.items()))


def _row(cells):
    return tuple(
        str(cells.get(name, "")) if kind == "string" else int(cells.get(name, 0))
        for name, kind in ((name, _kind(name)) for name in SETTLEMENT_COLUMNS)
    )


def _kind(name):
    return "number" if name in {"gross", "fee", "net", "line"} else "string"


def as_read(lines):
    """The same by the files; sums, whose order nobody goes by, sorted."""
    rows = [_row(row) for row in lines.table().to_pylist()]
    at = [*SETTLEMENT_COLUMNS].index("source")
    sums = [row for row in rows if row[at] == OLDER]
    return [*sorted(sums), *(row for row in rows if row[at] != OLDER)]


@pytest.mark.parametrize("seed", range(8))
def test_a_night_has_what_a_plain_model_says(settled, seed):
    chance = random.Random(seed)
    files: list[tuple[str, Sequence[Line]]] = []
    for at in range(7):
        name = f"S{chance.randrange(5)}"
        lines = some_lines(chance, settled.run, name=f"{name}-{at}")
        # Others tell some of them again, some twice, with the tariff or without.
        lines += [
            {**chance.choice(before), "line": 100 + number, "method": chance.choice(("", "card"))}
            | {"brand": chance.choice(("", "visa"))}
            for number, (_, before) in enumerate(chance.choices(files, k=8) if files else ())
            if before
        ]
        chance.shuffle(lines)
        lines = [{**line, "line": number} for number, line in enumerate(lines)]
        settled.keep(f"settlement/{name}", *lines)
        files.append((name, lines))
    for by_payment in (False, True):
        asked = {
            name: {*chance.sample("ABCDEFZ", chance.randrange(4))}
            for name in ("order_no", "transaction_id")
        }
        with settled.asked() as settlements:
            wanted = replace(NamedPayments.of(*asked.values()), by_payment=by_payment)
            lines_of_night = settlements.lines(since=SINCE, payments=wanted)
        expected = modelled(files, settled.run, asked=asked, by_payment=by_payment)
        assert as_read(lines_of_night) == expected
