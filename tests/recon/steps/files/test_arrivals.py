import socket
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from recon.files.inbox.fetching import RemoteFile
from recon.model.nights import Mode, NightRequest
from recon.model.words import Verdict
from recon.steps.files import arrivals
from recon.steps.files.ingest import ingest
from recon.store.nights import facts_rows, order_rows, runs
from recon.store.schema import order_file, reject
from tests.recon.files.whole_read import spooled_file

EXPECTED = """
[[accounts."100042/100042001".expected]]
file = "orders-{date}.csv"
sender = "the shop"
expected_by = "01:00"
wait_until = "03:00"
"""


def declare(merchant: Any, text: str) -> None:
    """Add to the merchant's file; the clock is 02:00 UTC after the business date closed."""
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text() + text)


def with_archive(merchant: Any) -> Path:
    """The folder in which what is read is kept from now on."""
    place: Path = merchant.folder / "archive"
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text().replace("inbox =", f'archive = "{place}"\ninbox =', 1))
    return place


def told(merchant: Any, *, pause: Any = None, **sleeping: Any) -> str:
    """What the first step of a night says."""
    with merchant.environment() as environment:
        request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
        now = merchant.clock()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id="run-1", as_of=now, now=now)
        used = replace(environment, pause=pause) if pause else environment
        return ingest("run-1", environment=used, **sleeping).sentence


def test_a_night_waits_for_a_file_that_comes_late(merchant: Any) -> None:
    """It looks again until the file is there, and then has nothing to complain of."""
    declare(merchant, EXPECTED)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        merchant.now += timedelta(seconds=seconds)
        if len(slept) == 5:
            merchant.drop("orders-2026-11-20.csv", merchant.order(merchant.payments("captured")[0]))

    sentence = told(merchant, sleep=sleep)
    assert len(slept) == 5
    assert "1 new order files" in sentence
    assert "expected" not in sentence


def test_who_is_late_is_told_and_the_same_night_heals(merchant: Any) -> None:
    """A file that does not come makes the night INCOMPLETE until a later run of it has the file."""
    declare(merchant, EXPECTED)
    merchant.wait(hours=2)
    paid = merchant.payments("captured")
    merchant.drop("other.csv", merchant.order(paid[0]))
    assert merchant.night() is Verdict.INCOMPLETE
    assert "orders-2026-11-20.csv of the shop is not there" in merchant.told[0].sentence
    assert "expected by 01:00, and was waited for until 03:00" in merchant.told[0].sentence
    assert _rejects(merchant) == ["orders-2026-11-20.csv"]
    merchant.drop("orders-2026-11-20.csv", merchant.order(paid[1]))
    merchant.night()
    assert "is not there" not in merchant.told[0].sentence
    assert _sources_with_rejects(merchant) == []


def test_a_night_waits_no_longer_than_its_bound(merchant: Any) -> None:
    """A clock that stands still does not hold the night for ever."""
    declare(merchant, EXPECTED)
    looks: list[float] = []
    assert "was waited for until 03:00" in told(merchant, sleep=looks.append)
    assert len(looks) <= 12 * 60


def test_a_server_that_cannot_be_reached_is_told_and_the_night_goes_on(
    merchant: Any, monkeypatch: Any
) -> None:
    """What is in the inbox is read; the folder elsewhere stands among the sources as missing."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (merchant.folder / "known_hosts").write_text("")
    declare(
        merchant,
        f"""
[[accounts."100042/100042001".sources]]
url = "sftp://u@127.0.0.1:{port}/out"
known_hosts_file = "{merchant.folder / "known_hosts"}"
password_env = "SFTP_PASSWORD"
""",
    )
    monkeypatch.setitem(merchant.variables, "SFTP_PASSWORD", "secret")
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    sentence = told(merchant)
    assert "1 new order files" in sentence
    assert f"sftp://u@127.0.0.1:{port}/out cannot be read" in sentence
    assert _rejects(merchant) == [f"sftp://u@127.0.0.1:{port}/out"]


def test_a_file_that_somebody_writes_elsewhere_leaves_the_night_incomplete(
    merchant: Any, monkeypatch: Any
) -> None:
    """Nothing of it is read, its folder stands among the sources; the same night heals."""
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text().replace("settle_seconds = 0", "settle_seconds = 5"))
    declare(
        merchant,
        """
[[accounts."100042/100042001".sources]]
url = "s3://books/out"
access_key_env = "A"
secret_key_env = "S"
""",
    )
    kept = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    text = kept.read_bytes()
    kept.unlink()
    monkeypatch.setattr(arrivals, "_opened", lambda *_, **__: nullcontext(_Uploading(text)))
    moments: list[timedelta] = []
    _Uploading.ends = False
    sentence = told(merchant, pause=moments.append)
    assert "orders.csv was not fetched: is still being written" in sentence
    assert set(moments) == {timedelta(seconds=5)}
    assert _rejects(merchant) == ["s3://books/out"]
    _Uploading.ends = True
    with merchant.environment() as environment:
        later = replace(environment, pause=moments.append)
        assert "1 new order files" in ingest("run-1", environment=later).sentence
    assert _sources_with_rejects(merchant) == []


class _Uploading:
    """A folder elsewhere whose file grows with every look until it ends."""

    ends = False

    def __init__(self, text: bytes) -> None:
        self._text, self._looks = text, 0

    def entries(self) -> list[RemoteFile]:
        return [self.again("orders.csv")]

    def again(self, name: str) -> RemoteFile:
        self._looks += not self.ends
        size = len(self._text)
        return RemoteFile(name, size, datetime(2026, 11, 20, tzinfo=UTC), f"{self._looks}")

    def parts(self, _: str) -> list[bytes]:
        return [self._text]


def test_the_same_file_again_is_nothing_and_other_content_is_a_new_version(merchant: Any) -> None:
    """Under any name, which is noted; a content is stored once, and it is told what was known."""
    one, other = map(merchant.order, merchant.payments("captured")[:2])
    path = merchant.drop("orders.csv", one, one)
    assert told(merchant).startswith("1 new order files with 2 rows accepted and 0 rejected; 0 ")

    def again() -> tuple[str, list[tuple[Any, ...]], int]:
        with merchant.environment() as environment:
            sentence = ingest("run-1", environment=environment).sentence
            with environment.store.reading() as connection:
                named = order_file.c.name, order_file.c.version, order_file.c.rows_repeat
                files = [tuple(row) for row in connection.execute(select(*named))]
                return (
                    sentence,
                    files,
                    sum(facts.row_count for facts in facts_rows.every(connection)),
                )

    known = "0 new order files with 0 rows accepted and 0 rejected; "
    first = ("orders.csv", 1, 0)
    assert again() == (f"{known}1 files were known already.", [first], 2)
    (merchant.inbox / "copy.csv").write_bytes(path.read_bytes())
    told_before = " Told before, and counted once: copy.csv (2 rows)."
    files = [first, ("copy.csv", 1, 0)]
    sentence = f"1{known[1:]}1 files were known already.{told_before}"
    assert again() == (sentence, files, 4)
    assert again() == (f"{known}2 files were known already.", files, 4)
    merchant.drop("orders.csv", one, other)
    (merchant.inbox / "copy.csv").unlink()
    sentence, files, rows = again()
    assert sentence.startswith("1 new order files with 2 rows accepted")
    assert (files, rows) == ([first, ("copy.csv", 1, 0), ("orders.csv", 2, 0)], 6)


def test_a_file_that_stays_in_the_inbox_is_read_once(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its hash alone it is known; what was refused, or is not in the archive, is read again."""
    place = with_archive(merchant)
    kept = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    (merchant.inbox / "bad.csv").write_text("no,such,header\n")
    read: list[str] = []

    def spooled(path: Path, **how: Any) -> Any:
        read.append(path.name)
        return spooled_file(path, **how)

    monkeypatch.setattr("recon.steps.files.ingest.order_file", spooled)
    told(merchant)

    def again() -> list[str]:
        read.clear()
        with merchant.environment() as environment:
            sentence = ingest("run-1", environment=environment).sentence
        assert "1 files were known already. 1 refused as a whole" in sentence
        return sorted(read)

    assert sorted(read) == ["bad.csv", "orders.csv"]
    assert again() == ["bad.csv"]
    next(place.rglob("*.csv")).unlink()
    assert again() == ["bad.csv", "orders.csv"]
    assert [found.read_bytes() for found in place.rglob("*.csv")] == [kept.read_bytes()]
    assert again() == ["bad.csv"]


def test_what_was_read_is_kept_unless_it_is_private(merchant: Any) -> None:
    """Order files lie in the archive by hash; one with card numbers in any column does not."""
    place = with_archive(merchant)
    row = merchant.order(merchant.payments("captured")[0])
    kept = merchant.drop("orders.csv", row)
    private = merchant.inbox / "private.csv"
    head, line = kept.read_text().splitlines()
    private.write_text(f"{head},note\n{line},card 4111 1111 1111 1111 please\n")
    sentence = told(merchant)
    assert "Not archived: private.csv: it holds card numbers in column note" in sentence
    assert "4111" not in sentence
    assert [found.read_bytes() for found in place.rglob("*.csv")] == [kept.read_bytes()]


def _rejects(merchant: Any) -> list[str]:
    with merchant.environment() as environment, environment.store.reading() as connection:
        return list(connection.execute(select(reject.c.source)).scalars())


def _sources_with_rejects(merchant: Any) -> list[str]:
    with merchant.environment() as environment, environment.store.reading() as connection:
        (found,) = runs.newest_of_accounts(connection)
        return [item.source for item in order_rows.rejects_of_night(connection, found)]
