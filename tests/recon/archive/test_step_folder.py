import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from recon.archive import storage
from recon.archive.step_folder import (
    FileEntry,
    Manifest,
    manifest_bytes,
    manifest_of,
    sealed_step,
    step_problems,
    write_step,
)
from recon.archive.storage import UNFINISHED, LocalStorage
from recon.model.errors import ArchiveBrokenError
from tests.recon.archive.planted import NIGHT, about, parts, written

FOLDER = f"{NIGHT}/inputs"
KILLED = """
import os, signal, sys
from pathlib import Path
from recon.archive import storage
from recon.archive.storage import LocalStorage
from tests.recon.archive.planted import written

root, passed, wanted = Path(sys.argv[1]), 0, 0

def crash(*_):
    global passed
    passed += 1
    if passed == wanted:
        os.kill(os.getpid(), signal.SIGKILL)

def crashing(do):
    def crash_around(*arguments):
        crash()
        result = do(*arguments)
        crash()
        return result
    return crash_around

# Between any two steps of any write, as the machine could end there.
storage.os.fsync = crashing(os.fsync)
storage.Path.replace = crashing(Path.replace)
storage.flush_folder = crashing(storage.flush_folder)
written(LocalStorage(root / "all"), 4200, 100, crash_point=crash)
passes = passed
for wanted in range(1, passes + 1):
    child = os.fork()
    if not child:
        passed = 0
        written(LocalStorage(root / str(wanted)), 4200, 100, crash_point=crash)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, wanted
print(passes)
"""


@contextmanager
def full_disk(size):
    """No file of this process may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, kept)


def test_a_file_lies_on_the_disk_before_the_next_one_is_made(tmp_path):
    """Of a step that nobody wrote before, one table at a time is held."""
    storage, there = LocalStorage(tmp_path), []

    def one_by_one():
        for part in parts(4200):
            there.append([path.name for path in tmp_path.rglob("*.parquet")])
            yield part

    sealed = write_step(storage, night=NIGHT, about=about(), files=one_by_one())

    assert [*map(len, there)] == [0, 1, 2]
    assert sealed.manifest == written(storage, 4200).manifest


def test_no_manifest_is_there_before_the_names_of_its_files_are_on_the_disk(tmp_path, monkeypatch):
    """The folder is brought to the disk before the manifest and after it, and no more often."""
    rename, flush, seen = Path.replace, storage.flush_folder, []

    def renamed(path, target):
        seen.append(target.name)
        return rename(path, target)

    def flushed(folder):
        flush(folder)
        seen.append(folder)

    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(storage, "flush_folder", flushed)
    written(LocalStorage(tmp_path), 4200)

    folder = tmp_path / FOLDER
    of_step = [each for each in seen if isinstance(each, str) or each == folder]
    files = ["orders.parquet", "universe.parquet", "rules.toml"]
    assert of_step == [*files, folder, "manifest.json", folder]


def test_a_disk_that_is_full_half_way_leaves_no_half_of_a_file(tmp_path):
    storage = LocalStorage(tmp_path)
    with full_disk(200), pytest.raises(OSError, match="File too large"):
        written(storage, 4200, 100)
    assert storage.names(NIGHT) == []

    sealed = written(storage, 4200, 100)
    assert step_problems(storage, sealed) == []


@pytest.mark.process
def test_killed_at_any_moment_a_step_is_written_whole_by_the_next_attempt(tmp_path):
    """Between the first byte and the manifest: never a manifest over files that are not there."""
    calm = written(LocalStorage(tmp_path / "calm"), 4200, 100)
    variables = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    passes = int(subprocess.check_output(command, env=variables))
    assert passes > 20
    for at in range(1, passes + 1):
        storage = LocalStorage(tmp_path / str(at))
        left = sealed_step(storage, folder=FOLDER)
        assert left is None or step_problems(storage, left) == [], at

        sealed = written(storage, 4200, 100)

        assert sealed == calm, at
        assert step_problems(storage, sealed) == [], at
        assert not any(UNFINISHED in name for name in storage.names("")), at


def test_a_changed_file_and_one_that_was_added_are_named(tmp_path):
    storage = LocalStorage(tmp_path)
    sealed = written(storage, 4200, 100)
    path = tmp_path / FOLDER / "orders.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    (tmp_path / FOLDER / "later.parquet").write_bytes(b"x")

    assert [problem.rpartition("/")[2] for problem in step_problems(storage, sealed)] == [
        "later.parquet lies there, and nobody sealed it: move it away",
        "orders.parquet is not the file that was sealed: its content was changed",
    ]


def test_what_an_attempt_left_that_did_not_end_goes(tmp_path):
    storage = LocalStorage(tmp_path)
    with storage.writing(f"{FOLDER}/ledger.parquet") as file:
        file.write(b"half of a night")

    assert step_problems(storage, written(storage, 4200)) == []


def test_a_step_that_says_the_same_is_used_as_it_is(tmp_path):
    storage = LocalStorage(tmp_path)
    sealed = written(storage, 4200)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / FOLDER).iterdir()}

    assert written(storage, 4200) == sealed
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / FOLDER).iterdir()} == before
    assert storage.folders(NIGHT) == [FOLDER]


@pytest.mark.parametrize("change", ["rows", "bytes", "manifest"])
def test_a_step_that_says_something_else_stays_under_another_name(tmp_path, change):
    storage = LocalStorage(tmp_path)
    written(storage, 4200)
    if change == "bytes":
        (tmp_path / FOLDER / "orders.parquet").write_bytes(b"PAR1")
    if change == "manifest":
        (tmp_path / FOLDER / "manifest.json").write_bytes(b"{}")
    sealed = written(storage, 4300 if change == "rows" else 4200)

    assert step_problems(storage, sealed) == []
    assert len(sealed.manifest.files) == len(parts(4200))
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.superseded-1"]


ENTRY = FileEntry("orders.parquet", 2, 900, "1" * 64, "orders/1")


def test_a_format_from_the_future_is_refused_by_name():
    document = json.loads(manifest_bytes(Manifest(about(), (ENTRY,))))
    later = json.dumps(document | {"format": "recon night/4"}).encode()

    with pytest.raises(ArchiveBrokenError, match=r"recon night/4.*knows 'recon night/3'"):
        manifest_of(later, name="inputs/manifest.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"format": "recon night/3"}',
        b'{"format": "recon night/3", "files": [{"name": "a"}], "absent": []}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_manifest_is_refused_by_name(content):
    with pytest.raises(ArchiveBrokenError, match=r"inputs/manifest\.json of the archive"):
        manifest_of(content, name="inputs/manifest.json")


def test_the_same_content_after_another_link_is_the_same():
    """A step that was written twice says the same, whatever the history did in between."""
    once = Manifest(about(), (ENTRY,))
    again = Manifest(about(history_before=f"9:{'b' * 64}"), (ENTRY,))
    other = Manifest(about(rules_digest="6" * 64), (ENTRY,))

    assert once.same_content(again)
    assert not once.same_content(other)
