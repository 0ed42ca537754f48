from datetime import UTC, datetime, timedelta
from functools import partial

from recon.store.database.engine import Store
from recon.store.people import approval_rows
from recon.store.people.approval_rows import CompleteApproval, PersonsWord

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
ANNA = PersonsWord("Anna", authenticated=True, at=NOW)
BEN = PersonsWord("Ben", authenticated=False, at=NOW)
LATER = NOW + timedelta(days=3)


def test_a_first_word_stands_until_it_is_completed(store: Store) -> None:
    """One row per list: first, then complete."""
    with store.writing() as connection:
        approval_rows.save_first(
            connection, "d1", instruction_ids=["i2", "i1"], word=ANNA, valid_until=LATER
        )
        first = approval_rows.open_approval(connection, "d1")
        assert first is not None
        assert (first.instruction_ids, first.by, first.valid_until) == (("i2", "i1"), "Anna", LATER)
        assert [one.digest for one in approval_rows.open_approvals(connection)] == ["d1"]
        approval_rows.save_second(connection, first, word=BEN)
        assert approval_rows.open_approval(connection, "d1") is None


def test_a_complete_approval_is_known_by_any_of_its_instructions(store: Store) -> None:
    """With its two people and how long it holds; one that a single person gave is none."""
    with store.writing() as connection:
        for digest, ids, until in (("d1", ["i1", "i2"], NOW), ("d2", ["i3"], LATER)):
            approval_rows.save_first(
                connection, digest, instruction_ids=ids, word=ANNA, valid_until=until
            )
            first = approval_rows.open_approval(connection, digest)
            assert first is not None
            approval_rows.save_second(connection, first, word=BEN)

        approval_rows.save_first(
            connection, "d3", instruction_ids=["i2"], word=ANNA, valid_until=LATER
        )

        assert approval_rows.complete_approvals(connection, instruction_ids={"i2", "i4"}) == [
            CompleteApproval(("i1", "i2"), ("Anna", "Ben"), NOW)
        ]


def test_a_void_word_is_gone_with_its_reason(store: Store) -> None:
    """What counts no more stays in the table with why."""
    with store.writing() as connection:
        approval_rows.save_first(
            connection, "d1", instruction_ids=["i1"], word=ANNA, valid_until=LATER
        )
        first = approval_rows.open_approval(connection, "d1")
        assert first is not None
        approval_rows.void(connection, first, why="the list changed", at=NOW)

        assert approval_rows.open_approvals(connection) == []


def test_a_code_is_used_once_and_never_an_older_one(store: Store) -> None:
    """A replayed code, or one from before the last used, is refused."""
    with store.writing() as connection:
        used = [
            approval_rows.use_code(connection, person, time_step=step, at=NOW)
            for person, step in (("anna", 7), ("anna", 7), ("anna", 6), ("ben", 7), ("anna", 8))
        ]

    assert used == [True, False, False, True, True]


def test_wrong_codes_are_counted_within_their_time(store: Store) -> None:
    """Old mistakes are forgotten."""
    with store.writing() as connection:
        for minutes in (0, 10, 20):
            at = NOW + timedelta(minutes=minutes)
            approval_rows.note_wrong_code(connection, "anna", origin="login 1", at=at)
        since = NOW + timedelta(minutes=5)

        wrong = partial(approval_rows.wrong_codes, connection, origin="login 1", since=since)
        assert len(wrong("anna")) == 2
        assert wrong("ben") == []
        assert approval_rows.wrong_codes(connection, "anna", origin="login 2", since=since) == []


def test_a_release_needs_its_second_person(store: Store) -> None:
    """One word lifts nothing."""
    with store.writing() as connection:
        approval_rows.save_release(connection, "run-1", reason="explained", word=ANNA)
        alone = approval_rows.released(connection)
        approval_rows.save_release(connection, "run-1", reason="explained", word=BEN)

        assert (alone, approval_rows.released(connection)) == (frozenset(), {"run-1"})
        approval_rows.save_release(connection, "run-1", reason="anew", word=BEN, ended="Anna left")
        assert approval_rows.released(connection) == frozenset()
