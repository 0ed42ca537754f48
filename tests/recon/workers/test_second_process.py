"""A piece of work in a second process: what it gives back, what it is told, how it may end."""

import os
import signal
import time
from pathlib import Path

import pytest

from recon.config.cluster import ClusterSettings
from recon.model.errors import ArchiveError, ClusterError
from recon.workers.dask_workers import workers_of
from recon.workers.second_process import ATTEMPTS, WithSecondProcess

pytestmark = pytest.mark.process


def doubled(number: int) -> tuple[int, int]:
    """The number twice, and who did it; it says something on the way."""
    os.write(1, b"a library speaks")
    return 2 * number, os.getpid()


def killed_before(mark: str) -> int:
    """Killed until the file has as many bytes as it may be killed; how often it was."""
    path = Path(mark)
    done, wanted = path.read_text().split("/")
    if len(done) < int(wanted):
        path.write_text(f"{done}x/{wanted}")
        os.kill(os.getpid(), signal.SIGKILL)
    return len(done)


def refused(_: str) -> None:
    """What the archive says."""
    msg = "the archive says no"
    raise ArchiveError(msg)


def broken(word: str) -> int:
    """An error that quotes what it was given."""
    return int(word)


def asleep(mark: str) -> None:
    """Says who it is and does not end."""
    Path(mark).write_text(str(os.getpid()))
    time.sleep(600)


def known(_: str) -> dict[str, str]:
    """The variables that it has."""
    return dict(os.environ)


def test_a_piece_is_done_by_another_process_while_this_one_goes_on() -> None:
    """What came of it is given when it is asked for, whatever was printed meanwhile."""
    with WithSecondProcess().meanwhile(doubled, 21) as wait:
        number, who = wait()

    assert number == 42
    assert who != os.getpid()


def test_a_process_that_dies_changes_nothing(tmp_path: Path) -> None:
    """The piece is begun again by another one."""
    mark = tmp_path / "killed"
    mark.write_text(f"/{ATTEMPTS - 1}")

    with WithSecondProcess().meanwhile(killed_before, str(mark)) as wait:
        assert wait() == ATTEMPTS - 1


def test_processes_that_die_each_time_end_the_step_with_a_sentence(tmp_path: Path) -> None:
    """It says what was kept and what to do, and nothing is begun without end."""
    mark = tmp_path / "killed"
    mark.write_text("/100")

    with (
        WithSecondProcess().meanwhile(killed_before, str(mark)) as wait,
        pytest.raises(ClusterError, match=r"ended from outside 3 times.*kept.*compare_beside"),
    ):
        wait()
    assert mark.read_text() == "xxx/100"


def test_an_error_of_ours_comes_back_as_itself() -> None:
    """Its sentence is what people read."""
    with (
        WithSecondProcess().meanwhile(refused, "") as wait,
        pytest.raises(ArchiveError, match=r"^the archive says no$"),
    ):
        wait()


def test_an_unexpected_error_is_named_by_its_place_and_not_by_its_words() -> None:
    """Its words may quote a file."""
    with (
        WithSecondProcess().meanwhile(broken, "card-canary") as wait,
        pytest.raises(ClusterError, match=r"ValueError at test_second_process\.py:\d+") as caught,
    ):
        wait()
    assert "canary" not in str(caught.value)


def test_a_piece_without_end_ends_the_step(tmp_path: Path) -> None:
    """After result_seconds; its process ends with the block."""
    mark = tmp_path / "asleep"
    with (
        WithSecondProcess(seconds_max=5).meanwhile(asleep, str(mark)) as wait,
        pytest.raises(ClusterError, match="did not end within 5 s"),
    ):
        wait()

    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_second_process_knows_only_the_variables_that_the_work_names() -> None:
    """No key, no password, no address of a database reaches it."""
    given = {
        "RECON_SEAL_KEY": "canary",
        "RECON_DATABASE_URL": "canary",
        "S3_KEY": "for the archive",
    }

    with WithSecondProcess(variables=given).meanwhile(known, "", needs={"S3_KEY"}) as wait:
        has = wait()

    assert has["S3_KEY"] == "for the archive"
    assert not {name for name, word in has.items() if name.startswith("RECON_") or "canary" in word}


@pytest.mark.parametrize("helps", [True, False])
def test_a_second_process_is_there_for_who_asks_for_one(helps: bool) -> None:  # noqa: FBT001 - a case
    """As shipped there is none, and the piece is done when its result is wanted."""
    settings = ClusterSettings(compare_beside=helps, partitions=3)
    with workers_of(settings, variables={}) as workers:
        assert (workers.helps, workers.partitions) == (helps, 3)
        with workers.meanwhile(doubled, 4) as wait:
            number, who = wait()

    assert number == 8
    assert (who != os.getpid()) is helps
