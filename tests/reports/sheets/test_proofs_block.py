from collections.abc import Callable
from dataclasses import replace

from recon.model.figures import NightFigures
from tests.reports.drawn_sheets import content_of, values_of, words_on

Build = Callable[..., NightFigures]


def test_a_question_counts_its_checks(build: Build) -> None:
    """On paper a proof is one line: how many checks it has, and that none fails."""
    rows = values_of(content_of(build()), "Control totals")
    lines = {row[9]: row for row in rows if str(row[9]).startswith("T")}

    assert lines["T4"][6:9] == [3, 0, "OK"]
    assert lines["T1"][0] == "Every row that was read was accepted, rejected or skipped by a rule"
    assert lines["T11"][8] == "not covered"


def test_what_was_not_asked_says_why(build: Build) -> None:
    """A proof without a source names what is missing, in its own line."""
    sentence = "settlement, T11 and T18: no settlement file was given"
    content = content_of(build(not_covered=(sentence,)))
    line = next(row for row in values_of(content, "Control totals") if row[9] == "T11")

    assert line[10] == "no settlement file was given"
    assert f"Not covered: {sentence}" not in words_on(content, "Control totals")


def test_a_failing_check_is_counted_and_stands_first(build: Build) -> None:
    """One check in a hundred that fails is counted, and stands first."""
    night = build()
    broken = replace(night.control_totals[2], left=1)
    totals = (*night.control_totals[:2], broken, *night.control_totals[3:])
    rows = values_of(content_of(replace(night, control_totals=totals)), "Control totals")
    single = next(number for number, row in enumerate(rows) if row[6] == "First figure")

    assert next(row for row in rows if row[9] == "T4")[6:9] == [3, 1, "CHECK"]
    assert rows[single + 1][9] == "CHECK"
