"""Contents that nobody is to try again, in the history."""

from datetime import UTC, datetime
from typing import Any

from recon.store.database import history
from recon.store.nights import broken_files

AT = datetime(2026, 1, 5, tzinfo=UTC)
ONE, OTHER = "a" * 64, "b" * 64
NAME, COPY = ("100042", "100042001", "bomb.csv"), ("100042", "100042001", "copy.csv")


def test_a_content_is_set_aside_until_somebody_says_so(store: Any) -> None:
    """Under each name under which it was met, and for every account."""
    with store.writing() as connection:
        assert broken_files.set_aside_content(connection, ONE, counts=bool) is None
        broken_files.set_aside(connection, ONE, why="bomb.csv is one", name=NAME, at=AT)
        broken_files.note_met(connection, ONE, name=COPY, at=AT)
        known = broken_files.set_aside_content(connection, ONE, counts=bool)
        assert known == broken_files.SetAside("bomb.csv is one", frozenset({NAME, COPY}))
        assert broken_files.set_aside_content(connection, OTHER, counts=bool) is None
        assert broken_files.contents_of(connection, ("x", "y", "z")) == ()
        assert broken_files.contents_of(connection, COPY) == (ONE,)
        word = {"by": "Ann", "reason": "more memory now"}
        broken_files.let_read_again(connection, (ONE,), name=COPY, **word, at=AT)
        assert broken_files.set_aside_content(connection, ONE, counts=bool) is None
        assert broken_files.contents_of(connection, COPY) == ()
        assert history.verify(connection)[1] == ""
