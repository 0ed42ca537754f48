"""DuckDB's own process: what it may, what it knows, and what becomes of who asks when it dies."""

import os
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

import pyarrow as pa
import pytest

from recon.proof import sql_session
from recon.proof.sql_session import MEMORY_MB, PROCESS_MB, SqlError, reading
from tests.recon.proof.killed_sql import ENDLESS

MIB, BUSY_TICKS, GONE_TRIES_MAX = 1 << 20, 60, 6_000


def process_of(sql):
    """The process that has the connection of a session."""
    return sql._process.process.pid


def is_there(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def ticks(pid):
    """Hundredths of a second that a process has worked."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def test_rows_and_tables_come_back_as_they_are(tmp_path):
    """Whole numbers beyond 64 bits, texts, truths, lists and moments, none of them rounded."""
    large = (1 << 100) + 1
    moment = datetime(2026, 11, 20, 1, 2, 3, 456, tzinfo=UTC)
    with reading(tmp_path) as sql:
        sql.register("given", pa.table({"paid_at": [moment], "text": ['"é\n']}))
        rows = sql.rows("SELECT $1::HUGEINT, text, true, NULL, [1, 2] FROM given", [large])
        table = sql.table("SELECT paid_at, $more AS more FROM given", {"more": "x"})
        figures = sql.table("SELECT sum(a + 9007199254740992) AS figure FROM range(4) t(a)")

    assert rows == [(large, '"é\n', True, None, [1, 2])]
    assert figures.to_pylist() == [{"figure": 4 * 2**53 + 6}]  # a float ends at 2**53
    assert table.to_pylist() == [{"paid_at": moment, "more": "x"}]


def test_no_figure_comes_back_as_a_float(tmp_path):
    """Money is whole minor units: rows that hold anything less are refused."""
    with reading(tmp_path) as sql, pytest.raises(SqlError, match="float"):
        sql.rows("SELECT 0.1::DOUBLE")


def test_sessions_one_after_the_other_share_a_process_and_nothing_else(tmp_path):
    """A night has one process; what one connection made no other one finds."""
    with reading(tmp_path) as sql:
        first = process_of(sql)
        sql.execute("CREATE TEMP TABLE mine AS SELECT 1")
        with reading(tmp_path) as beside:
            assert process_of(beside) != first
            beside.rows("SELECT 1")
    with reading(tmp_path) as again, pytest.raises(SqlError, match="mine does not exist"):
        again.rows("FROM mine")


def test_no_key_and_no_address_is_in_its_environment(tmp_path, monkeypatch):
    """What a night knows of keys and databases stays in the night."""
    sql_session._end_all()  # the next one begins with what this process knows now
    for name in ("RECON_DATABASE_URL", "RECON_SEAL_KEY", "AWS_SECRET_ACCESS_KEY", "RECON_X"):
        monkeypatch.setenv(name, "a canary of this test")
    with reading(tmp_path) as sql:
        known = Path(f"/proc/{process_of(sql)}/environ").read_bytes()
        (told,) = sql.rows("SELECT list(value) FROM duckdb_settings()")

    assert b"PATH=" in known
    assert b"canary" not in known
    assert "canary" not in str(told)


def test_it_is_bound_and_the_first_to_go_where_memory_ends(tmp_path):
    """Memory by the kernel beside DuckDB's own bound, one thread, no core with rows in it."""
    with reading(tmp_path) as sql:
        settings = sql.rows("SELECT current_setting('threads'), current_setting('memory_limit')")
        place = Path(f"/proc/{process_of(sql)}")
        limits = {
            line[:25].strip(): line[25:].split()[0]
            for line in (place / "limits").read_text().splitlines()[1:]
        }
        assert (place / "oom_score_adj").read_text().strip() == "1000"

    assert settings == [(1, "488.2 MiB")]
    assert int(limits["Max data size"]) == (MEMORY_MB + PROCESS_MB) * MIB
    assert limits["Max core file size"] == "0"


def test_what_asks_for_more_memory_than_the_kernel_gives_is_an_error_and_not_the_end(
    tmp_path, monkeypatch
):
    """DuckDB's own bound far too high: the kernel's holds, and whoever asked hears of it."""
    many = "SELECT count(DISTINCT a || 'of some length') FROM range(20000000) t(a)"
    monkeypatch.setattr(sql_session, "PROCESS_MB", 200 - 5_000)
    with pytest.raises(SqlError), reading(tmp_path, memory_mb=5_000) as sql:
        sql.rows(many)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_whoever_asks_hears_that_it_died_and_the_next_session_has_a_new_one(tmp_path, how):
    """No answer is an error with its signal; nothing of it is left behind."""
    with reading(tmp_path) as sql:
        dead = process_of(sql)
        os.kill(dead, how)
        with pytest.raises(SqlError, match=rf"that asks DuckDB ended \({how.name}\)"):
            sql.rows(ENDLESS)
    with reading(tmp_path) as sql:
        assert process_of(sql) != dead
        assert sql.rows("SELECT 1") == [(1,)]


def test_a_process_that_took_too_long_is_gone_with_what_it_wrote(tmp_path, monkeypatch):
    """Nothing runs on, and its temporary files go, although it could not clear them away."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with reading(tmp_path, seconds_max=1) as sql:
        slow = process_of(sql)
        assert [*tmp_path.iterdir()]
        with pytest.raises(SqlError, match=r"not done within 1 s"):
            sql.rows(ENDLESS)

    assert not is_there(slow)
    assert [*tmp_path.iterdir()] == []


def test_it_ends_with_the_process_that_asks_however_that_ends(tmp_path):
    """A night that was killed leaves no DuckDB behind, whatever statement that had in work."""
    asking = f"""
from pathlib import Path
from recon.proof.sql_session import reading
with reading(Path({str(tmp_path)!r})) as sql:
    print(sql._process.process.pid, flush=True)
    sql.rows({ENDLESS!r})
"""
    with subprocess.Popen([sys.executable, "-c", asking], stdout=subprocess.PIPE) as night:
        pid = int(night.stdout.readline())
        while ticks(pid) < BUSY_TICKS:  # it begins with ten, and the statement ends never
            sleep(0.01)
        night.kill()
    for _ in range(GONE_TRIES_MAX):
        if not is_there(pid):
            return
        sleep(0.01)
    pytest.fail(f"process {pid} runs on")


def test_a_process_that_was_allowed_more_is_not_asked_again(tmp_path):
    """What it freed stays its own: under a lower bound it could take nothing more."""
    with reading(tmp_path, memory_mb=MEMORY_MB) as sql:
        first = process_of(sql)
    with reading(tmp_path, memory_mb=2 * MEMORY_MB) as sql:
        larger = process_of(sql)
    with reading(tmp_path, memory_mb=MEMORY_MB) as sql:
        smaller = process_of(sql)

    assert (larger, smaller == larger) == (first, False)
    assert not is_there(larger)


def test_no_thread_of_duckdb_works_beside_the_one_that_is_asked(tmp_path):
    """Its idle threads have ended processes; ours are the one that asks and its watcher."""
    with reading(tmp_path) as sql:
        assert sql.rows("SELECT count(*) FROM range(100000) WHERE md5(range::VARCHAR) > '8'")
        assert len([*Path(f"/proc/{process_of(sql)}/task").iterdir()]) == 2
