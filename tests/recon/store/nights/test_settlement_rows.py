from dataclasses import replace
from datetime import date

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, LoadCounts, frame_of
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import settlement_rows
from recon.store.nights.night_lines import OLDER, AskedFor, NightLines
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from tests.recon.store.kept_lines import keep_lines

WHOLE = "(whole file)"


def save(
    store: Store, run: Run, storages: StorageOf, name: str, *lines: dict[str, object], bad: str = ""
) -> LoadCounts:
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
    return keep_lines(store, run, frame, source=source, storages=storages, rejects=rejects)


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


def test_lines_that_another_file_told_are_repeats(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """As many as it told; one more of the same is a movement of its own."""
    save(store, run, storages, "settlement/1", {"order_no": "A"})
    assert save(store, run, storages, "settlement/2", *({"order_no": "A"},) * 2) == LoadCounts(
        2, 1, 1, 0
    )
    assert told(store, run, storages) == ["A", "A"]


def test_a_line_that_tells_the_brand_as_well_is_no_second_movement(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """What a contract may go by is kept, and makes no repeat a line of its own."""
    facts = {"method": "card", "brand": "visa", "region": "EEA"}
    assert save(store, run, storages, "settlement/1", {"order_no": "A", **facts}) == LoadCounts(
        1, 1, 0, 0
    )
    assert save(store, run, storages, "settlement/2", {"order_no": "A"}) == LoadCounts(1, 0, 1, 0)
    with store.reading() as connection:
        lines = NightLines.of(connection, run, since="", asked=AskedFor.of(), storages=storages)
        found = lines.frame()
    assert found[[*facts]].to_dict("records") == [facts]


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
        batches = settlement_rows.batches_of(connection, run, since="2026-11-01", until=None)
        assert batches == frozenset()


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


def test_lines_of_other_accounts_are_theirs(store: Store, run: Run, storages: StorageOf) -> None:
    """One file may tell of several accounts of the merchant."""
    save(
        store,
        run,
        storages,
        "settlement/1",
        {"order_no": "A"},
        {"order_no": "B", "account_id": "other"},
    )
    assert told(store, run, storages) == ["A"]


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


def test_a_file_is_read_again_when_what_told_its_lines_says_something_else(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Its repeats were left out because of lines that are gone; read again, none is lost."""
    both = ({"order_no": "A"}, {"order_no": "C"})
    save(store, run, storages, "settlement/1", {"order_no": "A"}, {"order_no": "B"})
    save(store, run, storages, "settlement/2", *both)
    assert doubtful(store, run, storages) == set()
    save(store, run, storages, "settlement/1", {"order_no": "B"})
    assert doubtful(store, run, storages) == {"settlement/2"}
    save(store, run, storages, "settlement/2", *both)

    assert doubtful(store, run, storages) == set()
    assert sorted(told(store, run, storages)) == ["A", "B", "C"]


def test_files_that_were_read_again_are_not_read_for_ever(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """The same content once more changes nothing of what others told."""
    lines = ({"order_no": "A"}, {"order_no": "B"})
    save(store, run, storages, "settlement/1", *lines)
    for name in ("settlement/2", "settlement/3"):
        save(store, run, storages, name, *lines)
    save(store, run, storages, "settlement/1", {"order_no": "B"})
    assert doubtful(store, run, storages) == {"settlement/2", "settlement/3"}
    for name in ("settlement/2", "settlement/3"):
        save(store, run, storages, name, *lines)

    assert doubtful(store, run, storages) == set()
    assert sorted(told(store, run, storages)) == ["A", "B"]


def test_a_file_that_grows_makes_no_other_doubtful(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """A month to date tells all that it told before: what repeats it is not read again."""
    lines = [{"order_no": each} for each in "ABC"]
    for day in range(1, 4):
        save(store, run, storages, "settlement/month", *lines[:day])
        save(store, run, storages, f"settlement/{day}", lines[day - 1])
        assert doubtful(store, run, storages) == set()
    save(store, run, storages, "settlement/month", *lines[1:])
    assert doubtful(store, run, storages) == {f"settlement/{day}" for day in (1, 2, 3)}


def doubtful(store: Store, run: Run, storages: StorageOf) -> set[str]:
    """Names of files that are to be read once more."""
    with store.reading() as connection:
        return {*settlement_rows.KnownFiles.of(connection, run, storages=storages).doubtful}
