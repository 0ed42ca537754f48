from dataclasses import replace
from datetime import date

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, LoadCounts, frame_of
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import bank_rows, settlement_rows
from recon.store.nights.night_lines import OLDER, AskedFor, NightLines
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import repeats_of
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
        lines = NightLines.of(
            connection, run, since="", asked=AskedFor.of(), storages=storages, until=until
        )
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
        repeats = repeats_of(connection, run, storages=storages, until=2)
        counts = settlement_rows.taken(connection, repeats)
    assert counts == {"settlement/2": LoadCounts(2, 1, 1, 0)}


def test_a_line_that_tells_the_brand_as_well_is_no_second_movement(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """What a contract may go by is kept, and makes no repeat a line of its own."""
    facts = {"method": "card", "brand": "visa", "region": "EEA"}
    save(store, run, storages, "settlement/1", {"order_no": "A", **facts})
    save(store, run, storages, "settlement/2", {"order_no": "A"})
    with store.reading() as connection:
        lines = NightLines.of(connection, run, since="", asked=AskedFor.of(), storages=storages)
        found = lines.frame()
    assert found[[*facts]].to_dict("records") == [facts]


def test_what_is_charged_back_and_paid_out_is_counted_once(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Whichever files tell it, and as often as one of them does."""
    back = {"entry_type": "chargeback", "transaction_id": "T", "gross": -100, "net": -101}
    paid = {"entry_type": "payout", "gross": 50, "fee": 0, "net": 50}
    save(store, run, storages, "settlement/1", back, paid)
    save(store, run, storages, "settlement/2", back, back, paid, {**back, "gross": -30})
    account = run.merchant_id, run.account_id
    with store.reading() as connection:
        assert settlement_rows.charged_back(connection, run) == {("T", "EUR"): 230}
        paid_out = bank_rows.payouts_of(connection, accounts=[account], until=None)
    assert paid_out[["net", "source"]].to_numpy().tolist() == [[50, "settlement/1"]]


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
        lines = NightLines.of(
            connection,
            run,
            since="2026-11-01",
            asked=AskedFor.of(["A", "A"], ["T", ""]),
            storages=storages,
        )
        found = lines.frame()
        assert list(found["order_no"]) == ["", "", "A", "", "D"]
        summed = found[found["source"].eq(OLDER)]
        assert sorted(summed["entry_type"]) == ["earlier", "payout"]
        assert settlement_rows.days_told(connection, run) == ("2026-01-01", "2026-11-20")
        numbers = settlement_rows.order_nos_told(
            connection, run, since="2026-11-01", storages=storages
        )
        assert [number for each in numbers for number in each.to_pylist()] == ["D"]


def test_what_is_missing_is_missing_until_it_comes_right(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """On whichever night: the newest version of its name decides."""
    later = replace(run, business_date=date(2026, 11, 21))
    save(store, run, storages, "settlement/1", bad="is not there")
    save(store, later, storages, "settlement/2", bad="is not there")
    with store.reading() as connection:
        missing = settlement_rows.missing(connection, later, whole_file=WHOLE)
    assert missing == [(run.business_date, "settlement/1"), (later.business_date, "settlement/2")]
    save(store, later, storages, "settlement/1", {"order_no": "A"})
    with store.reading() as connection:
        missing = settlement_rows.missing(connection, later, whole_file=WHOLE)
        assert settlement_rows.missing(connection, later, whole_file=WHOLE, until=2) != missing
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
            settlement_rows.evidence_of(
                connection, run, transactions=each, references=ours, storages=storages
            )
            for each, ours in (({"T", ""}, {"ours", ""}), ({""}, {"ours"}), ({""}, {""}))
        )

    assert [each.reference_no for each in both] == ["by transaction", "by reference"]
    assert [each.reference_no for each in alone] == ["by reference"]
    assert none == []
