import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from recon.model.errors import OutputError, SpillError
from recon.store.database import history
from recon.store.money import spill
from recon.store.money.spill import (
    NOT_SENT,
    REPLY,
    RESERVE,
    SPILL_BYTES_MAX,
    Spill,
    Spilled,
    is_to_release,
    put_reply,
    remove,
)
from recon.store.schema import batch
from tests.recon.store.scripted import AT, ScriptedGateway, eligible_captures, journal_of

ANSWER = Spilled(
    kind=REPLY,
    batch_id="b1",
    run_id="r1",
    merchant_id="100042",
    account_id="100042001",
    body_sha256="a" * 64,
    at=datetime(2026, 11, 21, 2, 0, 1, 5, tzinfo=UTC),
    status=200,
    headers={"date": "today"},
    reply=b'{"return_status": "1"}\xff',
    reply_sha256="b" * 64,
)


def test_what_was_kept_comes_back_the_same(tmp_path):
    saved = Spill([tmp_path / "spill"])
    path = saved.save(ANSWER)

    assert list(saved.stored_files()) == [(path, ANSWER)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_room_is_taken_before_and_used_then(tmp_path):
    """The largest answer has its room on the disk before anything is sent; it is used up by it."""
    saved = Spill([tmp_path])
    saved.reserve()
    room = next(tmp_path.glob(f"{RESERVE}*"))
    taken = room.stat().st_blocks * 512
    saved.save(replace(ANSWER, reply=b"x" * 2_000_000))

    assert taken >= SPILL_BYTES_MAX
    assert not room.exists()
    assert len(next(saved.stored_files())[1].reply) == 2_000_000


def test_no_room_is_said_before_anything_is_sent(tmp_path, monkeypatch):

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match="nothing was sent: free 4 MiB"):
        Spill([tmp_path]).reserve()


def test_the_second_place_is_used_when_the_first_cannot_be(tmp_path):
    (tmp_path / "reports").write_text("not a folder")
    saved = Spill([tmp_path / "reports" / "spill", tmp_path / "db.spill"])

    assert saved.save(ANSWER).parent == tmp_path / "db.spill"


def test_an_answer_that_no_place_takes_is_told(tmp_path):
    (tmp_path / "reports").write_text("not a folder")

    with pytest.raises(OutputError, match="rows will count as in doubt"):
        Spill([tmp_path / "reports" / "spill"]).save(ANSWER)


@pytest.mark.parametrize("change", ["status", "reply", "sha256", "cut", "none", "list"])
def test_a_changed_file_is_refused_whole(tmp_path, change):
    saved = Spill([tmp_path])
    path = saved.save(ANSWER)
    told = json.loads(path.read_bytes())
    if change in told:
        told[change] = 201 if change == "status" else "eA=="
    text = {"cut": path.read_text()[:-20], "none": "", "list": "[]"}
    path.write_text(text.get(change, json.dumps(told)))

    with pytest.raises(SpillError, match="not what was written"):
        list(saved.stored_files())


def test_a_link_is_not_followed(tmp_path):
    saved = Spill([tmp_path])
    path = saved.save(ANSWER)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SpillError):
        spill.read(path)


def test_what_is_removed_is_gone(tmp_path):
    saved = Spill([tmp_path])
    remove(saved.save(ANSWER))
    saved.reserve()
    saved.free()

    assert list(tmp_path.iterdir()) == []


def test_two_accounts_in_one_folder_have_a_room_each(tmp_path):
    """One that ends, or keeps an answer, does not take away what the other wrote or reserved."""
    one, other = (Spill([tmp_path], account=name) for name in ("100042/1", "100042/2"))
    one.reserve()
    other.reserve()
    saved = one.save(ANSWER)
    one.free()
    rooms = [path for path in tmp_path.iterdir() if path.name.startswith(RESERVE)]

    assert [path.stat().st_size for path in rooms] == [SPILL_BYTES_MAX]
    assert [path for path, _ in other.stored_files()] == [saved]


SHA256 = "b" * 64


@pytest.fixture
def journal(store, run):
    made = journal_of(store, run, run_id=run.run_id)
    ready = eligible_captures(store, run, orders=2)
    made.claim("b1", ready, request=ScriptedGateway().prepare(ready), at=AT)
    return made


def _spilled(journal, *, kind=REPLY):
    standing = journal.status("b1")
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


def test_a_reply_goes_where_it_belongs_once(store, journal):
    for _ in range(2):
        with store.writing() as connection:
            put_reply(connection, _spilled(journal), at=AT)
    with store.reading() as connection:
        names = ("state", "reply", "replied_at", "reply_headers")
        saved = connection.execute(select(*(batch.c[name] for name in names))).one()
        events = [event.event for event in history.links_of(connection, ["b1"], entity="batch")]

    assert tuple(saved) == ("replied", b"DONE", AT, '{"retry-after": "9"}')
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
def test_what_does_not_fit_is_an_error_for_people(store, journal, kind, changed, why):
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


def test_a_reply_to_a_batch_that_was_closed_without_it_is_not_guessed(store, journal):
    journal.doubt("b1", reason="silence", at=AT)

    with pytest.raises(SpillError, match="closed without it"), store.writing() as connection:
        put_reply(connection, _spilled(journal), at=AT)


def test_nothing_is_released_that_was_answered(store, journal):
    spilled = _spilled(journal, kind=NOT_SENT)
    with store.reading() as connection:
        before = is_to_release(connection, spilled)
    with store.writing() as connection:
        put_reply(connection, _spilled(journal), at=AT)

    assert before
    with pytest.raises(SpillError, match="has a reply"), store.reading() as connection:
        is_to_release(connection, spilled)
