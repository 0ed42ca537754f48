from dataclasses import replace

import pytest
from sqlalchemy import select

from recon.model.errors import SpillError
from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.money.journal import StoredJournal
from recon.store.money.lasting_journal import NOT_SENT, REPLY, Spilled, is_to_release, put_reply
from recon.store.nights.runs import Run
from recon.store.schema import batch
from tests.recon.store.scripted import AT, ScriptedGateway, cleared_captures

SHA256 = "b" * 64


@pytest.fixture
def journal(store: Store, run: Run) -> StoredJournal:
    """A journal with one claimed batch, b1."""
    made = StoredJournal(store, run, run_id=run.run_id)
    ready = cleared_captures(store, run, orders=2)
    made.claim("b1", ready, request=ScriptedGateway().prepare(ready), at=AT)
    return made


def _spilled(journal: StoredJournal, *, kind: str = REPLY) -> Spilled:
    standing = journal.standing("b1")
    assert standing is not None
    return Spilled(
        kind=kind,
        batch_id="b1",
        body_sha256=standing.body_sha256,
        at=AT,
        status=200,
        headers={"retry-after": "9"},
        reply=b"DONE",
        reply_sha256=SHA256 if kind == REPLY else "",
        **journal.keys,
    )


def test_a_reply_goes_where_it_belongs_once(store: Store, journal: StoredJournal) -> None:
    """The batch has its reply and its event; the same file again changes nothing."""
    for _ in range(2):
        with store.writing() as connection:
            put_reply(connection, _spilled(journal), at=AT)
    with store.reading() as connection:
        names = ("state", "reply", "replied_at", "reply_headers")
        kept = connection.execute(select(*(batch.c[name] for name in names))).one()
        events = [event.event for event in history.links_of(connection, ["b1"])]

    assert tuple(kept) == ("replied", b"DONE", AT, '{"retry-after": "9"}')
    assert events == ["claimed", "reply from file"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"batch_id": "b2"}, "does not know the batch"),
        ({"body_sha256": "c" * 64}, "has other rows"),
        ({"run_id": "r9"}, "has other rows"),
        ({"account_id": "other"}, "has other rows"),
    ],
)
@pytest.mark.parametrize("kind", [REPLY, NOT_SENT])
def test_what_does_not_fit_is_an_error_for_people(
    store: Store, journal: StoredJournal, kind: str, changed: dict[str, str], why: str
) -> None:
    """Another database, a backup or another batch: said in words, and nothing is changed."""
    spilled = replace(_spilled(journal, kind=kind), **changed)
    if kind == NOT_SENT and "batch_id" in changed:
        # A claim whose commit never arrived asks for nothing.
        with store.reading() as connection:
            assert not is_to_release(connection, spilled)
        return
    judge = {
        REPLY: lambda connection: put_reply(connection, spilled, at=AT),
        NOT_SENT: lambda connection: is_to_release(connection, spilled),
    }[kind]

    with pytest.raises(SpillError, match=why), store.writing() as connection:
        judge(connection)


def test_a_reply_to_a_batch_that_was_closed_without_it_is_not_guessed(
    store: Store, journal: StoredJournal
) -> None:
    """Its rows are with evidence or people by now; the file stays for them."""
    journal.doubt("b1", reason="silence", at=AT)

    with pytest.raises(SpillError, match="closed without it"), store.writing() as connection:
        put_reply(connection, _spilled(journal), at=AT)


def test_nothing_is_released_that_was_answered(store: Store, journal: StoredJournal) -> None:
    """A file that says nothing left, beside a reply: somebody is wrong, people look."""
    spilled = _spilled(journal, kind=NOT_SENT)
    with store.reading() as connection:
        before = is_to_release(connection, spilled)
    with store.writing() as connection:
        put_reply(connection, _spilled(journal), at=AT)

    assert before
    with pytest.raises(SpillError, match="has a reply"), store.reading() as connection:
        is_to_release(connection, spilled)
