from datetime import timedelta

from recon.model.headway import Headway
from recon.telling.night_log import LINE_EVERY, PacedLines

SECOND = timedelta(seconds=1)


def test_a_line_comes_only_as_often_as_a_log_bears() -> None:
    """A short stage adds none; a long one says how far it is each half minute, by its own clock."""
    now = timedelta()
    said: list[str] = []
    lines = PacedLines(said.append, elapsed=lambda: now)
    lines.begin("query")
    for done in range(0, 10_000, 100):
        now += SECOND
        lines(Headway(done, 10_000, "orders asked"))
    lines.begin("settle")
    now += LINE_EVERY - SECOND
    lines(Headway(50, 100, "instructions sent"))

    assert said == [
        "query: 2,900 of 10,000 orders asked.",
        "query: 5,900 of 10,000 orders asked.",
        "query: 8,900 of 10,000 orders asked.",
    ]
