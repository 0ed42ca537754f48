from collections.abc import Callable
from dataclasses import replace

from recon.model.figures import NightFigures
from recon.model.words import SourceKind
from recon.proof.bridge import KNOWN_BEFORE, OTHER_ACCOUNTS, REPEATS, SET_ASIDE
from tests.reports.drawn_sheets import content_of, values_of, words_on

Build = Callable[..., NightFigures]


def bridged(night: NightFigures, *, known: int) -> NightFigures:
    """The night with the way of its order rows: 60 accepted come to those compared."""
    sides = night.sides
    compared = int(sides[sides["source"].eq("orders")]["count"].sum())
    others = compared - 60 + 4 + 1 - known
    steps = {REPEATS: -4, OTHER_ACCOUNTS: others, KNOWN_BEFORE: known, SET_ASIDE: -1}
    return replace(night, bridge={SourceKind.ORDERS: steps})


def test_rows_accepted_lead_to_records_compared_step_by_step(build: Build) -> None:
    """Each step that took or added a row has its line; their sum is held against the records."""
    content = content_of(bridged(build(), known=7))
    rows = values_of(content, "Control totals")
    lines = {row[6]: row[9] for row in rows if len(row) > 9 and row[6] and row[9] != ""}

    assert lines["Rows accepted"] == 60
    assert (lines["identical repeats"], lines["known from earlier files"]) == (-4, 7)
    assert lines["Come to"] == lines["Records compared"]
    assert lines["Check"] == "OK"
    assert "replaced by a newer row" not in lines
    assert any(
        word.startswith("Orders: 60 rows accepted − 4 identical repeats")  # noqa: RUF001 - a minus
        for word in words_on(content, "Sources")
    )


def test_a_row_without_a_step_makes_the_night_not_proven(build: Build) -> None:
    """One row that no step explains fails the check, and page one says so by itself."""
    night = bridged(build(), known=7)
    steps = {**night.bridge[SourceKind.ORDERS], KNOWN_BEFORE: 8}
    content = content_of(replace(night, bridge={SourceKind.ORDERS: steps}))

    assert "CHECK" in words_on(content, "Control totals")
    assert "NOT PROVEN" in words_on(content, "Summary")


def test_each_source_stands_on_one_line_per_currency(build: Build) -> None:
    """What a source says is one line: its records, its amount by result, and their sum."""
    rows = values_of(content_of(build()), "Control totals")
    header = next(row for row in rows if row[:4] == ["Source", "Account", "Currency", "Records"])
    yen = next(row for row in rows if (row[0], row[2]) == ("orders", "JPY"))

    assert header[4:9] == ["Matched", "Waiting", "Breaks", "Not verified", "All"]
    assert yen[3] == 14
    assert yen[4:9] == [1_186_585_212, "", 94_771, 880, 1_186_680_863]
