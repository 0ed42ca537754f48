"""Parts in other processes of this machine: what they give back, are told, how they may end."""

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from recon.config.cluster import ClusterSettings
from recon.model.errors import ArchiveError, ClusterError
from recon.workers.dask_workers import ProcessPool, workers_of

pytestmark = pytest.mark.process


def doubled(number):
    """The number twice, and who did it; it says something on the way."""
    os.write(1, b"a library speaks")
    return 2 * number, os.getpid()


def killed_before(mark):
    """Killed until the file has as many bytes as it may be killed; how often it was."""
    path = Path(mark)
    done, wanted = path.read_text().split("/")
    if len(done) < int(wanted):
        path.write_text(f"{done}x/{wanted}")
        os.kill(os.getpid(), signal.SIGKILL)
    return len(done)


def killed_at_three(numbered):
    """The number; at the third it is killed as `killed_before`."""
    number, mark = numbered
    if number == 3:
        killed_before(mark)
    return number


def asleep_or_done(mark):
    """Nothing, or no end of it."""
    if mark:
        asleep(mark)
    return mark


def refused(_):
    """What the archive says."""
    msg = "the archive says no"
    raise ArchiveError(msg)


def broken(word):
    """An error that quotes what it was given."""
    return int(word)


def asleep(mark):
    """Says who it is and does not end."""
    Path(mark).write_text(str(os.getpid()))
    time.sleep(600)


def known(_):
    """The variables that it has."""
    return dict(os.environ)


def done(work, item, *, by=None):
    (came,) = (by or ProcessPool()).each(work, [item])
    return came


def test_a_piece_is_done_by_another_process():
    number, who = done(doubled, 21)

    assert number == 42
    assert who != os.getpid()


def test_processes_that_die_each_time_end_the_step_with_a_sentence(tmp_path):
    mark = tmp_path / "killed"
    mark.write_text("/100")

    with pytest.raises(ClusterError, match=r"ended from outside 3 times.*kept.*compared_at_once"):
        done(killed_before, str(mark))
    assert mark.read_text() == "xxx/100"


def test_an_error_of_ours_comes_back_as_itself():
    with pytest.raises(ArchiveError, match=r"^the archive says no$"):
        done(refused, "")


def test_an_unexpected_error_is_named_by_its_place_and_not_by_its_words():
    """Its words may quote a file."""
    with pytest.raises(ClusterError, match=r"ValueError at test_process_pool\.py:\d+") as caught:
        done(broken, "card-canary")
    assert "canary" not in str(caught.value)


def test_a_piece_without_end_ends_the_step(tmp_path):
    mark = tmp_path / "asleep"
    with pytest.raises(ClusterError, match="was not done within 5 s"):
        done(asleep, str(mark), by=ProcessPool(seconds_max=5))

    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_second_process_knows_only_the_variables_that_the_work_names():
    given = {
        "RECON_SEAL_KEY": "canary",
        "RECON_DATABASE_URL": "canary",
        "S3_KEY": "for the archive",
    }

    (has,) = ProcessPool(variables=given).each(known, [""], needs={"S3_KEY"})

    assert has["S3_KEY"] == "for the archive"
    assert not {name for name, word in has.items() if name.startswith("RECON_") or "canary" in word}


def test_parts_are_done_side_by_side_and_come_in_their_order():
    done = [*ProcessPool(at_once=2).each(doubled, range(9))]

    assert [number for number, _ in done] == [*range(0, 18, 2)]
    assert len({who for _, who in done} - {os.getpid()}) in {1, 2}


def test_no_more_parts_are_handed_out_than_are_in_work_and_one_that_waits():
    """A night of many parts holds few of them, and what nobody asks for is not begun."""
    begun: list[int] = []

    def items():
        for number in range(9):
            begun.append(number)
            yield number

    done = ProcessPool(at_once=2).each(doubled, items())

    assert begun == []
    assert next(done)[0] == 0
    assert begun == [0, 1, 2, 3]


def test_a_process_that_dies_is_begun_again_and_no_part_is_lost(tmp_path):
    mark = tmp_path / "killed"
    mark.write_text("/1")

    done = [*ProcessPool(at_once=2).each(killed_at_three, [(n, str(mark)) for n in range(6)])]

    assert done == [*range(6)]
    assert mark.read_text() == "x/1"


def test_processes_end_with_whoever_stops_asking(tmp_path):
    mark = tmp_path / "asleep"
    done = ProcessPool(at_once=2).each(asleep_or_done, ["", str(mark)])
    assert isinstance(done, Generator)
    assert next(done) == ""
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.01)
    done.close()

    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.parametrize("helps", [True, False])
def test_other_processes_are_there_for_who_asks_for_them(helps: bool) -> None:  # noqa: FBT001 - a case
    settings = ClusterSettings(compared_at_once=1 + helps)
    with workers_of(settings, variables={}) as workers:
        assert workers.helps is helps
        number, who = done(doubled, 4, by=workers)

    assert number == 8
    assert (who != os.getpid()) is helps
