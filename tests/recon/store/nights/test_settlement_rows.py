from dataclasses import replace
from datetime import date

import pytest

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, LoadCounts, frame_of
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import bank_rows, settlement_rows
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import OLDER, AskedFor, Settlements
from tests.recon.store.kept_lines import keep_lines

WHOLE = "(whole file)"


def save(
    store: Store, run: Run, storages: StorageOf, name: str, *lines: dict[str, object], bad: str = ""
) -> None:
    """Store a settlement file; `bad` is why it stands for something that is not there."""
    plain = {"batch_id": "B1", "merchant_id": run.merchant_id, "account_id": run.account_id}
    plain |= {"settled_on": "2026-11-20", "entry_type": "capture", "currency": "EUR"}
    plain |= {"gross": 100, "fee": 1, "net": 99, "line": 2}
    rows = [{**plain, **one} for one in lines]
    rejects = [Reject(SourceKind.SETTLEMENT, name, 0, WHOLE, bad, "")] if bad else []
    source = SourceFile(
        SourceKind.SETTLEMENT, name, str(hash(str(rows))), 9, len(rows), len(rows), 0, 0
    )
    frame = frame_of(rows, columns=SETTLEMENT_COLUMNS)
    keep_lines(store, run, frame, source=source, storages=storages, rejects=rejects)


def told(store: Store, run: Run, storages: StorageOf, *, until: int | None = None) -> list[str]:
    """Order numbers of all lines that count."""
    with store.reading() as connection:
        lines = Settlements(connection, run, storages, until).lines(since="", asked=AskedFor.of())
        return list(lines.frame()["order_no"])


def test_a_newer_version_takes_the_place_of_the_older_one_whole(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """As of an earlier file the lines are those that counted then."""
    save(store, run, storages, "settlement/1", {"order_no": "A"}, {"order_no": "B"})
    save(store, run, storages, "settlement/1", {"order_no": "C"})
    assert told(store, run, storages) == ["C"]
    assert told(store, run, storages, until=1) == ["A", "B"]


def test_a_line_counts_as_often_as_one_file_tells_it(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Two of the same in one file are two movements, whichever file came first."""
    save(store, run, storages, "settlement/1", {"order_no": "A"})
    save(store, run, storages, "settlement/2", *({"order_no": "A"},) * 2)
    assert told(store, run, storages) == ["A", "A"]
    with store.reading() as connection:
        repeats = Settlements(connection, run, storages, 2).counted().repeats
        counts = settlement_rows.taken(connection, repeats)
    assert counts == {"settlement/2": LoadCounts(2, 1, 1, 0)}


@pytest.mark.parametrize(
    "other",
    [
        *({name: "Z"} for name in ("batch_id", "order_no", "transaction_id", "reference_no")),
        *({"own_reference": "Z"}, {"settled_on": "2026-11-19"}, {"entry_type": "refund"}),
        *({"currency": "SEK"}, {"gross": 7}, {"fee": 7}, {"net": 7}),
    ],
)
def test_a_line_that_differs_in_any_column_is_a_movement_of_its_own(
    store: Store, run: Run, storages: StorageOf, other: dict[str, object]
) -> None:
    """Only its number in the file and its tariff make it no other one."""
    save(store, run, storages, "settlement/1", {})
    save(store, run, storages, "settlement/2", other)
    assert len(told(store, run, storages)) == 2


def test_a_line_that_tells_the_brand_as_well_is_no_second_movement(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """What a contract may go by is kept, and makes no repeat a line of its own."""
    facts = {"method": "card", "brand": "visa", "region": "EEA"}
    save(store, run, storages, "settlement/1", {"order_no": "A", **facts})
    save(store, run, storages, "settlement/2", {"order_no": "A"})
    with store.reading() as connection:
        lines = Settlements(connection, run, storages).lines(since="", asked=AskedFor.of())
        found = lines.frame()
    assert found[[*facts]].to_dict("records") == [facts]


def test_what_is_charged_back_and_paid_out_is_counted_once(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Whichever files tell it, and as often as one of them does."""
    back = {"entry_type": "chargeback", "transaction_id": "T", "gross": -100, "net": -101}
    paid = {"entry_type": "payout", "gross": 50, "fee": 0, "net": 50}
    given_back = {**back, "entry_type": "chargeback_reversal", "gross": 10}
    asked_for = {**paid, "own_reference": "ours"}
    other = {**back, "account_id": "100042002"}
    save(store, run, storages, "settlement/1", back, paid, given_back)
    save(store, run, storages, "settlement/2", back, back, paid, {**back, "gross": -30})
    save(store, run, storages, "settlement/3", asked_for, {"transaction_id": "T"}, other)
    account = run.merchant_id, run.account_id
    with store.reading() as connection:
        assert Settlements(connection, run, storages).charged_back() == {("T", "EUR"): 220}
        paid_out = bank_rows.payouts_of(
            connection, run, accounts=[account], storages=storages, until=None
        )
    assert paid_out[["net", "source"]].to_numpy().tolist() == [[50, "settlement/1"]]


def test_pay_outs_of_a_file_that_lies_in_two_inboxes_count_for_each_account(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Each account's by its own inbox, once; what another inbox tells of it is no word of it."""
    other = replace(run, account_id="100042002")
    paid = {"entry_type": "payout", "gross": 50, "fee": 0, "net": 50}
    both = tuple(
        {**paid, "account_id": each.account_id, "net": net}
        for each, net in ((run, 50), (other, 70))
    )
    save(store, run, storages, "settlement/1", *both)
    save(store, other, storages, "settlement/1", *both)
    accounts = [(each.merchant_id, each.account_id) for each in (run, other)]
    with store.reading() as connection:
        paid_out = bank_rows.payouts_of(
            connection, run, accounts=accounts, storages=storages, until=None
        )
    assert paid_out[["account_id", "net"]].to_numpy().tolist() == [
        [run.account_id, 50],
        [other.account_id, 70],
    ]


def test_batches_are_those_of_every_version_and_of_whichever_inbox(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """An entry of the bank may name any; lines of other accounts name none of this one's."""
    other = replace(run, account_id="100042002")
    save(store, run, storages, "settlement/1", {"batch_id": "old"})
    save(store, run, storages, "settlement/1", {"batch_id": "new"})
    others = {"batch_id": "theirs", "account_id": other.account_id}
    beside = {"batch_id": "beside", "account_id": run.account_id}
    save(store, other, storages, "settlement/2", beside, others)
    account = run.merchant_id, run.account_id
    with store.reading() as connection:
        batches = bank_rows.batch_ids(connection, accounts=[account], storages=storages)
    assert batches == {"old", "new", "beside"}


def test_a_line_that_names_no_batch_may_be_of_any_that_its_file_tells_of(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """In its currency; one that names its batch is of that one."""
    rejects = [
        Reject(SourceKind.SETTLEMENT, "settlement/1", 4, "gross", "no number", "x", **cells)
        for cells in ({"currency": "EUR"}, {"currency": "SEK", "batch_id": "B9"})
    ]
    source = SourceFile(SourceKind.SETTLEMENT, "settlement/1", "s", 9, 4, 2, 2, 0)
    plain = {"merchant_id": run.merchant_id, "account_id": run.account_id, "currency": "EUR"}
    plain |= {"gross": 1, "fee": 0, "net": 1, "line": 2}
    rows = [{**plain, "settled_on": "2026-11-20", "batch_id": each} for each in ("B1", "B2")]
    lines = frame_of(rows, columns=SETTLEMENT_COLUMNS)
    keep_lines(store, run, lines, source=source, storages=storages, rejects=rejects)
    save(store, run, storages, "settlement/2", {"batch_id": "B3"})
    with store.reading() as connection:
        unread = Settlements(connection, run, storages).unread_batches(siblings=[])
    assert unread == {("EUR", ""), ("EUR", "B1"), ("EUR", "B2"), ("SEK", "B9")}


def test_older_lines_come_only_with_what_is_asked_about(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """By order number or transaction; what is left of older days comes as sums of its batch."""
    old = {"settled_on": "2026-01-01"}
    lines = (
        {"order_no": "A", **old},
        {"order_no": "B", **old},
        {"transaction_id": "T", **old},
        {"order_no": "A", "entry_type": "payout", **old},
        {"order_no": "D"},
    )
    save(store, run, storages, "settlement/1", *lines)
    with store.reading() as connection:
        settled = Settlements(connection, run, storages)
        asked = AskedFor.of(["A", "A"], ["T", ""])
        found = settled.lines(since="2026-11-01", asked=asked).frame()
        assert list(found["order_no"]) == ["", "", "A", "", "D"]
        summed = found[found["source"].eq(OLDER)]
        assert sorted(summed["entry_type"]) == ["earlier", "payout"]
        assert settled.days_told() == ("2026-01-01", "2026-11-20")
        orders, transactions = settled.names(since="2026-11-01")
        assert (orders.to_pylist(), transactions) == (["D"], set())


def test_what_is_missing_is_missing_until_it_comes_right(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """On whichever night: the newest version of its name decides."""
    later = replace(run, business_date=date(2026, 11, 21))
    save(store, run, storages, "settlement/1", bad="is not there")
    save(store, later, storages, "settlement/2", bad="is not there")
    with store.reading() as connection:
        missing = Settlements(connection, later, storages).missing(whole_file=WHOLE)
    assert missing == [(run.business_date, "settlement/1"), (later.business_date, "settlement/2")]
    save(store, later, storages, "settlement/1", {"order_no": "A"})
    with store.reading() as connection:
        missing = Settlements(connection, later, storages).missing(whole_file=WHOLE)
        assert Settlements(connection, later, storages, 2).missing(whole_file=WHOLE) != missing
    assert missing == [(later.business_date, "settlement/2")]


def test_evidence_is_found_by_transaction_and_by_our_own_reference(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Each alone is enough; a line that has neither is not told."""
    lines = (
        {"transaction_id": "T", "reference_no": "by transaction"},
        {"own_reference": "ours", "reference_no": "by reference"},
        {"transaction_id": "other", "own_reference": "", "reference_no": "neither"},
    )
    save(store, run, storages, "settlement/1", *lines)
    save(store, run, storages, "settlement/2", *lines[:2])
    with store.reading() as connection:
        both, alone, none = (
            Settlements(connection, run, storages).evidence(transactions=each, references=ours)
            for each, ours in (({"T", ""}, {"ours", ""}), ({""}, {"ours"}), ({""}, {""}))
        )

    assert [each.reference_no for each in both] == ["by transaction", "by reference"]
    assert [each.reference_no for each in alone] == ["by reference"]
    assert none == []
