import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from recon.model.nights import Mode
from recon.steps.care.verify import Reading, Verification, verify, verify_night
from recon.steps.night.report import rebuild
from tests.recon.steps.conftest import BUSINESS_DATE, Merchant, plain_workbooks
from tests.recon.steps.night.test_sealed_settle import archive_of, capture

READING = Reading(beside=lambda _: (), run_of=lambda _: "", differences=lambda *_: ())


def played(merchant: Merchant) -> None:
    """A dry night with an order in it."""
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)


def checked(merchant: Merchant) -> Verification:
    """`recon verify 2026-11-20`."""
    with merchant.environment() as environment:
        return verify_night(environment, name=BUSINESS_DATE)


def all_checked(merchant: Merchant) -> Verification:
    """`recon verify`."""
    with merchant.environment() as environment:
        return verify(environment, reading=READING)


def run_folder(merchant: Merchant) -> Path:
    """Of the newest run."""
    root = Path(archive_of(merchant).shown)
    return max(root.glob("nights/*/*/*/*"), key=lambda path: path.stat().st_mtime_ns)


def _flip(folder: Path) -> None:
    path = folder / "results" / "breaks.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _edit_manifest(folder: Path) -> None:
    path = folder / "results" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rules_digest": "0" * 64}))


def _move(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def _lose(folder: Path) -> None:
    shutil.rmtree(folder)


def _add_beside(folder: Path) -> None:
    (folder / "note.txt").write_text("mine")


def _add_step(folder: Path) -> None:
    shutil.copytree(folder / "results", folder / "more")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_flip, "results/breaks.parquet is not the file that was sealed"),
        (_edit_manifest, "results/manifest.json of the archive"),
        (_move, "inputs/manifest.json of the archive"),
        (_lose, "put it back from a backup of the archive"),
        (_add_beside, "/note.txt lies in the folder of a night, and nobody sealed it"),
        (_add_step, "/more/manifest.json lies in the folder of a night, and nobody sealed it"),
    ],
)
def test_whatever_happens_to_a_sealed_night_is_found_and_named(
    change: Callable[[Path], None], named: str, begun: Callable[..., Merchant]
) -> None:
    """A file or a manifest changed, a folder moved or gone, a file added: each is named."""
    merchant = begun(played)
    assert checked(merchant).problems == ()
    assert all_checked(merchant).problems == ()

    change(run_folder(merchant))

    problems = checked(merchant).problems
    assert any(named in problem for problem in problems), problems


def test_two_runs_folders_that_were_swapped_are_both_found(begun: Callable[..., Merchant]) -> None:
    """Each folder is bound by its own run's link; the other's does not stand for it."""
    merchant = begun(played)
    first = run_folder(merchant)
    merchant.night(mode=Mode.DRY_RUN)
    second = run_folder(merchant)
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)

    problems = " ".join(all_checked(merchant).problems)
    assert f"run {first.name}: " in problems
    assert f"run {second.name}: " in problems


def test_a_database_from_before_the_night_does_not_know_its_folder(
    begun: Callable[..., Merchant],
) -> None:
    """The archive remembers what a restored database forgot."""
    merchant = begun(played)
    database = merchant.sqlite_path
    older = database.with_suffix(".older")
    shutil.copy(database, older)
    merchant.night(mode=Mode.DRY_RUN)
    folder = run_folder(merchant)
    for path in database.parent.glob(f"{database.name}-*"):
        path.unlink()
    shutil.copy(older, database)

    problems = all_checked(merchant).problems
    assert any(folder.name in one and "is older than the archive" in one for one in problems), (
        problems
    )


def test_an_archive_that_cannot_be_reached_is_a_problem_and_no_crash(
    begun: Callable[..., Merchant],
) -> None:
    """The rest is looked at all the same."""
    merchant = begun(played)
    root = Path(archive_of(merchant).shown)
    root.rename(root.with_name("elsewhere"))
    root.write_text("")

    assert any("archive" in problem for problem in all_checked(merchant).problems)


def test_a_workbook_written_again_is_bound_beside_the_first(begun: Callable[..., Merchant]) -> None:
    """Both proofs stay: the newest under its name, the earlier one set aside and still whole."""
    merchant = begun(played)
    folder = run_folder(merchant)
    with merchant.environment() as environment:
        rebuild(folder.name, environment=environment, workbooks=plain_workbooks())

    assert checked(merchant).problems == ()
    assert (folder / "proof" / "manifest.json").is_file()
