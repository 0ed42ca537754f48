import json
import logging
import stat
from datetime import timedelta

import pytest

from recon.model.errors import ConfigurationError
from recon.model.step_progress import StepProgress
from recon.notify.night_log import LINE_EVERY, LOGGER, PacedLines, note, open_log


@pytest.fixture
def log(tmp_path):
    """A log that nights of this process write to, closed after the test."""
    path = tmp_path / "recon.log"
    open_log({"RECON_LOG_FILE": str(path)})
    yield path
    open_log({})


def _lines(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_line_has_its_fields_and_only_those(log):
    note("settle did its work.", fields={"run_id": "r-1", "rows": {"sent": 2}, "card": "4111"})

    (line,) = _lines(log)
    assert (line["said"], line["run_id"], line["rows"]) == (
        "settle did its work.",
        "r-1",
        {"sent": 2},
    )
    assert "4111" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_text_of_an_exception_stays_out(log):
    try:
        int("iban DE00")
    except ValueError:
        logging.getLogger(LOGGER).exception("it failed")

    assert "iban" not in log.read_text()
    assert _lines(log)[0]["said"] == "it failed"


def test_opening_it_again_writes_each_line_once(log):
    open_log({"RECON_LOG_FILE": str(log)})
    note("once", fields={})

    assert len(_lines(log)) == 1


def test_a_log_that_was_moved_away_goes_on_in_a_new_file(log):
    """Logrotate moves the file between two lines."""
    note("first", fields={})
    log.rename(log.with_suffix(".1"))
    note("second", fields={})

    assert [line["said"] for line in _lines(log)] == ["second"]


def test_a_log_that_cannot_be_written_is_refused_with_its_name():
    with pytest.raises(ConfigurationError, match=r"RECON_LOG_FILE names /nowhere/recon.log"):
        open_log({"RECON_LOG_FILE": "/nowhere/recon.log"})


SECOND = timedelta(seconds=1)


def test_a_line_comes_only_as_often_as_a_log_bears():
    """A short stage adds none; a long one says how far it is each half minute, by its own clock."""
    now = timedelta()
    said: list[str] = []
    lines = PacedLines(said.append, elapsed=lambda: now)
    lines.begin("query")
    for done in range(0, 10_000, 100):
        now += SECOND
        lines(StepProgress(done, 10_000, "orders asked"))
    lines.begin("settle")
    now += LINE_EVERY - SECOND
    lines(StepProgress(50, 100, "instructions sent"))

    assert said == [
        "query: 2,900 of 10,000 orders asked.",
        "query: 5,900 of 10,000 orders asked.",
        "query: 8,900 of 10,000 orders asked.",
    ]
