"""The door: whatever a file does to its reader, it is refused by name and the next one is read."""

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files import reader as doors
from recon.files.kinds.instruction_file import InstructionFile
from recon.files.reader import instructions
from recon.files.reader_process import (
    MIB,
    OWN_VARIABLES,
    SMALL_BYTES,
    FileReader,
    bounds_of,
)
from recon.files.typing.table_schema import ORDERS
from recon.instructions.sealing import Seal
from recon.model.errors import OutputError, ReaderBrokenError, SourceUnreadableError
from recon.model.step_progress import reported_to
from tests.recon.files.reader import breaking

SECRET = "payee DE89 3704 0044 0532 0130 00"
QUICK_SECONDS = 90


def tight(size_bytes):
    """The bounds of a small file, with little time and room to wait for in a test."""
    return replace(bounds_of(size_bytes), seconds=1, wall_seconds=90, out_bytes=3 * 2**20)


@pytest.fixture(scope="module")
def reader():
    """One warm process for all tests here."""
    reader = FileReader(bounds=tight)
    yield reader
    reader.close()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "orders-7.csv"
    path.write_text(SECRET)
    return path


def asked(reader, work, path):
    """The facts of a task."""
    with reader.read(path, work, path=path) as read:
        return read.facts


BREAKS = {
    breaking.panics: r"broke its reader \(PanicException at .*breaking.py:[0-9]+\)",
    breaking.unexpected: r"broke its reader \(KeyError at .*breaking.py:[0-9]+\)",
    breaking.no_memory: "needs more than 432 MiB of memory to be read; split it",
    breaking.no_room_in_memory: "needs more than 432 MiB of memory to be read; split it",
    breaking.no_memory_below: "needs more than 432 MiB of memory to be read; split it",
    breaking.segfault: r"broke its reader \(signal 11\)",
    breaking.killed: "ended its reader, perhaps for want of memory",
    breaking.endless: "needs more than 1 s of the processor to be read; split it",
    breaking.nonsense: "broke its reader",
    breaking.everything_written: "broke its reader",
}


@pytest.mark.parametrize(
    ("work", "words"), BREAKS.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_a_file_that_breaks_its_reader_is_refused_by_name(reader, path, work, words):
    began = time.monotonic()
    with pytest.raises(ReaderBrokenError, match=f"^orders-7.csv {words}") as told:
        asked(reader, work, path)
    assert "DE89" not in str(told.value)
    assert asked(reader, breaking.counted, path) == len(SECRET)
    assert time.monotonic() - began < QUICK_SECONDS


def test_it_is_told_how_much_of_a_slow_file_is_read(reader, tmp_path):
    large, small = tmp_path / "orders.csv", tmp_path / "small.csv"
    large.write_bytes(bytes(3 * MIB))
    small.write_bytes(bytes(MIB))
    heard: list[str] = []
    with reported_to(lambda step_progress: heard.append(str(step_progress))):
        asked(reader, breaking.slowly_counted, large)
        asked(reader, breaking.counted, small)

    assert heard[0] == "0 of 3 MiB of orders.csv read"
    assert heard[-2:] == ["3 of 3 MiB of orders.csv read", "0 of 1 MiB of small.csv read"]


def test_a_path_begins_where_its_caller_is(reader, path, monkeypatch):
    for folder in (path.parent, path.parent.parent):
        monkeypatch.chdir(folder)
        assert asked(reader, breaking.counted, path.relative_to(folder)) == len(SECRET)


def test_a_folder_that_does_not_answer_is_not_waited_for(path):
    """What waits is bounded by the clock; that is no fault of the file: it is tried again."""
    reader = FileReader(bounds=lambda size: replace(bounds_of(size), wall_seconds=1))
    with pytest.raises(
        SourceUnreadableError, match=r"orders-7\.csv was not read within 1 s"
    ) as told:
        asked(reader, breaking.asleep, path)
    reader.close()
    assert type(told.value) is SourceUnreadableError


def test_a_full_disk_is_no_fault_of_the_file(reader, path):
    with pytest.raises(OutputError, match=r"the rows of orders-7.csv .* make room there"):
        asked(reader, breaking.full_disk, path)


LIMITED = """
import resource, sys
from pathlib import Path
from recon.files.reader_process import FileReader
from recon.model.errors import SourceUnreadableError
from tests.recon.files.reader import breaking
limit, most, work = sys.argv[1:]
resource.setrlimit(getattr(resource, limit), (int(most), int(most)))
reader, path = FileReader(), Path("orders-7.csv")
with reader.read(path, breaking.counted, path=path) as read:
    print(read.facts)
try:
    with reader.read(path, getattr(breaking, work), path=path):
        pass
except SourceUnreadableError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("limit", "most", "work", "named"),
    [
        ("FSIZE", MIB, breaking.everything_written, "-f: files of {} bytes, not 536870912"),
        ("DATA", 400 * MIB, breaking.no_memory, "-d: memory of {} bytes, not 452984832"),
        ("CPU", 15, breaking.killed, "-t: {} s of the processor, not 20"),
    ],
)
def test_a_limit_of_the_process_is_no_fault_of_the_file(limit, most, work, named, path):
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, f"RLIMIT_{limit}", str(most), work.__name__],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=QUICK_SECONDS,
    )
    counted, refused, *more = ran.stdout.splitlines() or [ran.stderr]
    assert (counted, more) == (str(len(SECRET)), [])
    assert refused == (
        "SourceUnreadableError orders-7.csv was not read: its reader ended, and this process is "
        f"held to less than a reader may take (ulimit {named.format(most)}); "
        "raise that, then run again"
    )


def test_a_parquet_file_that_needs_more_memory_is_not_called_damaged(tmp_path):
    """Arrow says itself that memory ended, while it reads: the file is large, not broken."""
    word = pa.DictionaryArray.from_arrays(
        pa.array([0] * 3_000, pa.int32()), pa.array(["x" * 30_000])
    )
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table(dict.fromkeys(ORDERS.required, word)), path, compression="zstd")
    tight = replace(bounds_of(0), data_bytes=200 * MIB)
    reader = FileReader(bounds=lambda _: tight)
    task = {"path": path, "schema": ORDERS, "rules": Rules(), "layout": STANDARD}

    with (
        pytest.raises(ReaderBrokenError, match="needs more than 200 MiB of memory"),
        reader.read(path, doors.table, **task),
    ):
        pass
    reader.close()


def test_a_refusal_in_order_is_no_break(reader, path):
    with pytest.raises(SourceUnreadableError, match=r"^orders-7\.csv is empty$") as told:
        asked(reader, breaking.refused, path)
    assert type(told.value) is SourceUnreadableError


def test_rows_that_no_reader_writes_are_a_break(reader, path):
    with (
        pytest.raises(ReaderBrokenError, match="returned what no reader writes"),
        reader.read(path, breaking.no_rows, path=path) as read,
    ):
        breaking.reads_frame(read.rows)


def test_the_reader_has_no_secret(path, monkeypatch):
    monkeypatch.setenv("RECON_SIGN_KEY", "s3cret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    reader = FileReader()
    names = asked(reader, breaking.secrets, path)
    reader.close()
    assert "PATH" in names
    assert [name for name in names if name.startswith(("RECON_", "AWS_"))] == []


def test_the_warm_process_starts_again_when_it_was_ended(path):
    reader = FileReader()
    assert asked(reader, breaking.counted, path) == len(SECRET)
    process = reader._process
    process.process.send_signal(signal.SIGKILL)
    process.process.wait()
    with pytest.raises(SourceUnreadableError, match="its reader was ended from outside") as told:
        asked(reader, breaking.counted, path)
    assert type(told.value) is SourceUnreadableError
    assert asked(reader, breaking.counted, path) == len(SECRET)
    reader.close()


PARENT = """
import sys
from pathlib import Path
from recon.files.reader_process import FileReader
from recon.model.terms import SourceKind
from tests.recon.files.reader import breaking

path = Path(sys.argv[1])
reader = FileReader()
with reader.read(path, breaking.counted, path=path):
    print(reader._process.process.pid, flush=True)
with reader.read(path, breaking.asleep, path=path):
    pass
"""


def test_no_reader_outlives_who_started_it(path):
    root = Path(__file__).parents[4]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {"PYTHONPATH": str(root)},
    ) as parent:
        warm = int(parent.stdout.readline())
        forks = Path(f"/proc/{warm}/task/{warm}/children")
        until = time.monotonic() + QUICK_SECONDS
        while not (now := forks.read_text().split()) and time.monotonic() < until:
            time.sleep(0.02)
        parent.kill()
    while any(Path(f"/proc/{one}").exists() for one in (warm, *now)) and time.monotonic() < until:
        time.sleep(0.02)
    assert now
    assert not any(Path(f"/proc/{one}").exists() for one in (warm, *now))


def test_larger_files_get_more_and_never_without_an_end():
    sizes = [bounds_of(SMALL_BYTES + more * MIB) for more in (0, 1, 100, 1_000)]
    assert [one.data_bytes // MIB for one in sizes] == [432, 472, 4_432, 16_384]
    assert [one.seconds for one in sizes] == [20, 23, 320, 3_020]
    assert all(one.wall_seconds == 10 * one.seconds for one in sizes)


LOOK = """
import os
from recon.files import reader
before = len(os.listdir("/proc/self/task"))
import pyarrow.pandas_compat
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_what_is_loaded_before_a_fork_starts_no_thread():
    ended = subprocess.run(
        [sys.executable, "-c", LOOK],
        env=os.environ | OWN_VARIABLES,
        capture_output=True,
        check=True,
        text=True,
    )

    assert ended.stdout.split() == ["0"]


IBAN = "DE89370400440532013000"
PAGE_BYTES = 1024 * 1024
HALF_BYTES = 8
HALVES = "halves.json"
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw", re.MULTILINE)


def halved(secret):
    """A secret in two parts: whoever looks for it does not hold it whole."""
    return [secret[:HALF_BYTES].hex(), secret[HALF_BYTES:].hex()]


def instructions_and_what_is_held(rows, *, path, **how) -> InstructionFile:
    """The reader's task, then the names of the secrets that this process has in its memory.

    The type of what it returns says in which form the other process sends it.
    """
    facts = instructions(rows, path=path, **how)
    halves = json.loads((path.parent / HALVES).read_text())
    looked_for = {name: [bytes.fromhex(half) for half in pair] for name, pair in halves.items()}
    held = {name for name, pair in looked_for.items() if _is_in_memory(*pair)}
    return replace(facts, private=",".join(sorted(held)))


def _is_in_memory(first, second):
    """Whether the two stand side by side in memory; environment and arguments lie there too."""
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for region in _REGION.finditer(Path("/proc/self/maps").read_text()):
            at, end = (int(edge, 16) for edge in region.groups())
            while at < end:
                memory.seek(at)
                page = memory.read(min(PAGE_BYTES, end - at) + len(first) - 1)
                found = page.find(first)
                while found >= 0:
                    memory.seek(at + found + len(first))
                    if memory.read(len(second)) == second:
                        return True
                    found = page.find(first, found + 1)
                at += PAGE_BYTES
    return False


def test_the_process_that_reads_instructions_holds_no_key(tmp_path, monkeypatch):
    """Only the payee, which is in the file: the key that seals it is neither sent nor inherited."""
    key, sign_key = Fernet.generate_key(), Fernet.generate_key()
    raw = base64.urlsafe_b64decode(key)
    secrets = {
        "seal key": key,
        "seal key, half that signs": raw[:16],
        "seal key, half that encrypts": raw[16:],
        "seal key of digests": hashlib.sha256(b"recon payee\x1f" + key).digest(),
        "sign key": sign_key,
    }
    monkeypatch.setenv("RECON_SEAL_KEY", key.decode())
    monkeypatch.setenv("RECON_SIGN_KEY", sign_key.decode())
    looked_for = {name: halved(secret) for name, secret in secrets.items()}
    (tmp_path / HALVES).write_text(json.dumps(looked_for | {"payee": halved(IBAN.encode())}))
    path = tmp_path / "instructions-1.csv"
    path.write_text(
        "merchant_id,account_id,kind,request_id,currency,amount,beneficiary.bank_details.iban\n"
        f"100042,100042001,payout,P-1,EUR,10.00,{IBAN}\n"
    )
    requests: list[bytes] = []

    class Overheard(FileReader):
        """It keeps what it asks of the other process."""

        def _ask(self, request, **files):
            requests.append(request)
            return super()._ask(request, **files)

    reader = Overheard()
    monkeypatch.setattr(doors, "file_reader", lambda: reader)
    monkeypatch.setattr(doors, "instructions", instructions_and_what_is_held)
    seal = Seal(SecretStr(key.decode()))
    how: Any = {"rules": Rules(), "review_flags": frozenset({"1"}), "layout": STANDARD}
    read = doors.instruction_file(path, **how, seal=seal)
    reader.close()

    assert read.private == "payee"
    assert [name for name, secret in secrets.items() if secret in requests[0]] == []
    assert IBAN in seal.open(read.actions[0]["sealed"])
