from itertools import pairwise

import pytest

from recon.sandbox.ground.sandbox_terms import Notifications
from recon.sandbox.notify.notify_schedule import retry_seconds

HOUR = 3_600


def terms(**changed: int) -> Notifications:
    """The documented schedule, or a part of it."""
    documented = {"retry_first_seconds": 1, "retry_series_hours": 12, "retry_series": 3}
    given = documented | {"retry_jitter_percent": 10} | changed
    return Notifications(url="", types=(), **given)


def test_without_jitter_waits_double_until_twelve_hours_and_the_series_comes_three_times() -> None:
    """1, 2, 4 ... seconds, a last attempt at the end of the series, and all of it twice more."""
    due = retry_seconds(terms(retry_jitter_percent=0), seed=1, about="a")
    series = [*(2**number - 1 for number in range(1, 16)), 12 * HOUR]
    assert due == tuple(start + at for start in (0, 12 * HOUR, 24 * HOUR) for at in series)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_jitter_moves_every_wait_by_its_part_at_most(seed: int) -> None:
    """Instants rise, waits double within ten per cent and a second, the end stays the end."""
    due = retry_seconds(terms(), seed=seed, about="a")
    assert due[-1] == 36 * HOUR
    assert all(earlier < later for earlier, later in pairwise(due))
    for number, (earlier, later) in enumerate(pairwise((0, *due[:15]))):
        assert abs(later - earlier - 2**number) <= 1 + 0.1 * 2**number


def test_a_seed_replays_its_schedule_and_another_one_does_not() -> None:
    """The jitter is drawn, and drawn from the seed alone."""
    drawn = [retry_seconds(terms(), seed=seed, about="a") for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
