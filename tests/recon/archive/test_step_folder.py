import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recon.archive import storage
from recon.archive.step_folder import Part, find_sealed, sealed_step, step_problems, write_step
from recon.archive.storage import UNFINISHED, LocalStorage
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
def full_disk(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, kept)


def test_a_file_lies_on_the_disk_before_the_next_one_is_made(tmp_path: Path) -> None:
    """Of a step that nobody wrote before, one table at a time is held."""
    storage, there = LocalStorage(tmp_path), []

    def one_by_one() -> Iterator[Part]:
        for part in parts(4200):
            there.append([path.name for path in tmp_path.rglob("*.parquet")])
            yield part

    sealed = write_step(storage, night=NIGHT, about=about(), parts=one_by_one())

    assert [*map(len, there)] == [0, 1, 2]
    assert sealed.manifest == written(storage, 4200).manifest


def test_no_manifest_is_there_before_the_names_of_its_files_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is brought to the disk before the manifest and after it, and no more often."""
    rename, flush, seen = Path.replace, storage.flush_folder, []

    def renamed(path: Path, target: Path) -> Path:
        seen.append(target.name)
        return rename(path, target)

    def flushed(folder: Path) -> None:
        flush(folder)
        seen.append(folder)

    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(storage, "flush_folder", flushed)
    written(LocalStorage(tmp_path), 4200)

    folder = tmp_path / FOLDER
    of_step = [each for each in seen if isinstance(each, str) or each == folder]
    files = ["orders.parquet", "universe.parquet", "rules.toml"]
    assert of_step == [*files, folder, "manifest.json", folder]


def test_a_step_is_its_files_and_a_manifest_that_names_them(tmp_path: Path) -> None:
    """Every file stands in the manifest with its rows, and nothing else lies there."""
    storage = LocalStorage(tmp_path)
    sealed = written(storage, 4200, 100)

    assert storage.names(NIGHT) == [
        f"{FOLDER}/{name}"
        for name in ("manifest.json", "orders.parquet", "rules.toml", "universe.parquet")
    ]
    assert {entry.name: (entry.rows, entry.schema) for entry in sealed.manifest.files} == {
        "orders.parquet": (2, "orders/1"),
        "universe.parquet": (2, "universe/1"),
        "rules.toml": (0, ""),
    }
    assert step_problems(storage, sealed) == []
    assert sealed_step(storage, folder=FOLDER) == sealed


def test_the_same_step_again_writes_nothing(tmp_path: Path) -> None:
    """Nothing sealed is opened for writing, by a step that is done again neither."""
    storage = LocalStorage(tmp_path)
    first = written(storage, 4200, 100)
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in storage.names("")}

    again = written(storage, 4200, 100, history_before=f"9:{'b' * 64}")

    assert again == first
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in storage.names("")} == times


def test_a_step_that_says_something_else_stands_beside_the_first(tmp_path: Path) -> None:
    """An earlier attempt stays whole under another name, and its hash still finds it."""
    storage = LocalStorage(tmp_path)
    first, second = written(storage, 4200), written(storage, 4300)

    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.aside-1"]
    for sealed in (first, second):
        kept = find_sealed(storage, night=NIGHT, step="inputs", sha256=sealed.sha256)
        assert kept is not None
        assert kept.manifest == sealed.manifest
        assert step_problems(storage, kept) == []
    assert written(storage, 4400).folder == FOLDER
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.aside-1", f"{FOLDER}.aside-2"]


def test_a_disk_that_is_full_half_way_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    """What is not whole has no name; with room again the step is written as by the first."""
    storage = LocalStorage(tmp_path)
    with full_disk(200), pytest.raises(OSError, match="File too large"):
        written(storage, 4200, 100)
    assert storage.names(NIGHT) == []

    sealed = written(storage, 4200, 100)
    assert step_problems(storage, sealed) == []


@pytest.mark.process
def test_killed_at_any_moment_a_step_is_written_whole_by_the_next_attempt(tmp_path: Path) -> None:
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


def _cut(folder: Path) -> None:
    path = folder / "orders.parquet"
    path.write_bytes(path.read_bytes()[:-10])


def _flip(folder: Path) -> None:
    path = folder / "orders.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _remove(folder: Path) -> None:
    (folder / "universe.parquet").unlink()


def _add(folder: Path) -> None:
    (folder / "later.parquet").write_bytes(b"x")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_cut, "orders.parquet has .* bytes, and was sealed with"),
        (_flip, "orders.parquet is not the file that was sealed"),
        (_remove, "universe.parquet is gone from the archive"),
        (_add, "later.parquet was put there after it was sealed"),
    ],
)
def test_whatever_happens_to_a_file_is_seen_and_named(
    change: Callable[[Path], None], sentence: str, tmp_path: Path
) -> None:
    """A file cut, a bit flipped, a row appended, a file gone, a file added."""
    storage = LocalStorage(tmp_path)
    sealed = written(storage, 4200, 100)
    change(tmp_path / FOLDER)

    (problem,) = step_problems(storage, sealed)
    assert re.search(sentence, problem)


def test_a_step_that_was_changed_is_not_taken_for_the_one_that_was_written(tmp_path: Path) -> None:
    """Done again, a step whose file was changed is written anew, and the changed one kept aside."""
    storage = LocalStorage(tmp_path)
    first = written(storage, 4200, 100)
    _flip(tmp_path / FOLDER)

    again = written(storage, 4200, 100)

    assert again == first
    assert step_problems(storage, again) == []
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.aside-1"]


def test_a_step_in_its_own_folder_is_found_without_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night looks at its steps often, and a list of a remote storage is a request."""
    storage = LocalStorage(tmp_path)
    first = written(storage)
    listed: list[str] = []
    listing = LocalStorage.folders

    def counted(storage: LocalStorage, folder: str) -> object:
        listed.append(folder)
        return listing(storage, folder)

    monkeypatch.setattr(LocalStorage, "folders", counted)

    assert find_sealed(storage, night=NIGHT, step="inputs", sha256=first.sha256) == first
    assert listed == []

    storage.move(FOLDER, to=f"{FOLDER}.aside-1")
    kept = find_sealed(storage, night=NIGHT, step="inputs", sha256=first.sha256)
    assert kept is not None
    assert (kept.folder, listed) == (f"{FOLDER}.aside-1", [NIGHT])
