"""A step that is written in two goes is the step that is written in one."""

from pathlib import Path

import pytest

from recon.archive.step_folder import (
    BegunStep,
    Sealed,
    begin_step,
    end_step,
    sealed_step,
    step_problems,
)
from recon.archive.storage import LocalStorage
from tests.recon.archive.planted import NIGHT, about, parts, written

FOLDER = f"{NIGHT}/inputs"


def begun(storage: LocalStorage, *amounts: int) -> BegunStep:
    """A step with its orders of these amounts."""
    return begin_step(storage, folder=FOLDER, parts=lambda: parts(*amounts)[:1])


def ended(storage: LocalStorage, step: BegunStep, *amounts: int) -> Sealed:
    """The step with its other files."""
    first, *rest = parts(*amounts)
    return end_step(storage, step, about=about(), first=lambda: [first], rest=rest)


def lying(folder: Path) -> list[str]:
    """The files of the step."""
    return sorted(path.name for path in (folder / FOLDER).iterdir())


def test_both_goes_together_are_the_step(tmp_path: Path) -> None:
    """The same manifest, and every file as it names it; nothing is sealed before the end."""
    storage = LocalStorage(tmp_path)
    step = begun(storage, 4200)
    assert lying(tmp_path) == ["orders.parquet"]
    assert sealed_step(storage, folder=FOLDER) is None

    sealed = ended(storage, step, 4200)
    assert step_problems(storage, sealed) == []
    assert sealed == written(LocalStorage(tmp_path / "other"), 4200)


def test_what_an_attempt_left_that_did_not_end_goes(tmp_path: Path) -> None:
    """Whoever begins again writes its own files, and finds none of another's."""
    storage = LocalStorage(tmp_path)
    with storage.writing(f"{FOLDER}/ledger.parquet") as file:
        file.write(b"half of a night")
    begun(storage, 1)

    assert step_problems(storage, ended(storage, begun(storage, 4200), 4200)) == []


def test_a_step_that_says_the_same_is_used_as_it_is(tmp_path: Path) -> None:
    """Begun and ended once more, no file of it is written, and its hash stays the same."""
    storage = LocalStorage(tmp_path)
    sealed = ended(storage, begun(storage, 4200), 4200)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / FOLDER).iterdir()}

    step = begun(storage, 4200)
    assert step.is_sealed
    assert step.entries == sealed.manifest.files[:1]
    assert ended(storage, step, 4200) == sealed
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / FOLDER).iterdir()} == before
    assert storage.folders(NIGHT) == [FOLDER]


@pytest.mark.parametrize("change", ["first", "rest", "bytes", "manifest"])
def test_a_step_that_says_something_else_stays_under_another_name(
    tmp_path: Path, change: str
) -> None:
    """Whether its first files differ or the others, or it is not as it was sealed."""
    storage = LocalStorage(tmp_path)
    ended(storage, begun(storage, 4200), 4200)
    if change == "bytes":
        (tmp_path / FOLDER / "orders.parquet").write_bytes(b"PAR1")
    if change == "manifest":
        (tmp_path / FOLDER / "manifest.json").write_bytes(b"{}")
    amount = 4300 if change == "first" else 4200
    first, *rest = parts(amount)
    step = begun(storage, amount)
    rest = rest[:1] if change == "rest" else rest
    sealed = end_step(storage, step, about=about(), first=lambda: [first], rest=rest)

    assert step_problems(storage, sealed) == []
    assert [entry.name for entry in sealed.manifest.files] == [first.name, *(p.name for p in rest)]
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.aside-1"]
