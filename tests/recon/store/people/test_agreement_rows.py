from datetime import UTC, datetime, timedelta

from recon.store.database.engine import Store
from recon.store.people import agreement_rows
from recon.store.people.approval_rows import PersonsWord

NOW = datetime(2026, 11, 20, 2, tzinfo=UTC)
ANNA = PersonsWord("Anna", authenticated=True, at=NOW)
BEN = PersonsWord("Ben", authenticated=False, at=NOW)


def test_a_word_is_open_until_it_is_completed_or_void(store: Store) -> None:
    """Words about different things stand side by side and end each by itself."""
    until = NOW + timedelta(days=1)
    with store.writing() as connection:
        for subject in ("one", "two", "three"):
            agreement_rows.save_first(
                connection, "what", subject=subject, reason="why", word=ANNA, valid_until=until
            )
        first, second, _ = agreement_rows.open_words(connection)
        agreement_rows.save_second(connection, first, reason="why", word=BEN)
        agreement_rows.void(connection, second, why="too late", at=NOW)

        assert agreement_rows.open_word(connection, "what", subject="one") is None
        assert [one.subject for one in agreement_rows.open_words(connection)] == ["three"]
        assert agreement_rows.open_word(connection, "else", subject="three") is None
