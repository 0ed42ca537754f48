"""Journals and the roll-forward: what would correct the ledger, and whence each break."""

from dataclasses import replace
from datetime import UTC, datetime

from recon.model.figures import UnbookedExport
from tests.reports.drawn_sheets import content_of, values_of


def rows_on(figures, sheet):
    """The values of a sheet as another library reads them."""
    return values_of(content_of(figures), sheet)


def below(rows, title):
    """The rows of a block, from below its header to the first blank one."""
    top = next(number for number, row in enumerate(rows) if str(row[0]).startswith(title))
    block = []
    for row in rows[top + 2 :]:
        if not any(cell != "" for cell in row):
            break
        block.append(row)
    return block


def test_proposals_stand_with_their_totals(figures):
    rows = rows_on(figures, "Journals")

    assert below(rows, "Proposed per currency")[0][:8] == ["KWD", "", "", "", 1.234, 1.234, 0, "OK"]
    lines = [(row[2], row[3], row[4], row[5]) for row in below(rows, "Lines of the proposals (2)")]
    assert lines == [("1190", "KWD", 1.234, 0.0), ("4000", "KWD", 0.0, 1.234)]


def test_a_journal_that_does_not_balance_is_seen(build):
    journals = build().journals
    journals.loc[0, "debit"] = 1_235
    rows = rows_on(build(journals=journals), "Journals")

    assert below(rows, "Proposed per currency")[0][4:8] == [1.235, 1.234, 0.001, "CHECK"]


def test_what_is_out_and_not_in_the_books_is_listed(build):
    out = UnbookedExport(
        journal_id="b1-EUR-1",
        break_id="b1",
        order_no="=1+1",
        transaction_id="T1",
        currency="EUR",
        amount=-12345,
        run_id="run-7",
        exported_at=datetime(2026, 11, 18, 7, 30, tzinfo=UTC),
    )
    rows = rows_on(build(handed_out=(out,)), "Journals")
    (listed,) = below(rows, "Handed out, not yet seen in the ledger (1)")
    without = rows_on(build(handed_out=()), "Journals")

    assert listed[:5] == ["b1-EUR-1", "2026-11-18", "run-7", "EUR", -123.45]
    assert listed[6:9] == ["=1+1", "T1", "b1"]
    assert below(without, "Handed out, not yet seen in the ledger (0)")[0][0] == "None."


def test_breaks_roll_forward_in_number_and_in_money(figures):
    block = below(rows_on(figures, "Assurance"), "Breaks from the night before")
    told = {row[0] or row[1]: row[2:14] for row in block}

    assert told["breaks"] == [6, 5, 2, 0, -1, 0, -1, -1, 10, 10, 0, "OK"]
    assert told["JPY"] == [500, 0, 0, 94_771, 0, 0, 0, -500, 94_771, 94_771, 0, "OK"]
    # The reclassified break was one of 47.11 EUR and is one of JPY now.
    assert told["EUR"][3] == -47.11
    assert {row[13] for row in block} == {"OK"}


def test_a_break_that_came_from_nowhere_makes_the_night_not_proven(build):
    night = build()
    spoilt = replace(night, movements=night.movements.iloc[1:])
    block = below(rows_on(spoilt, "Assurance"), "Breaks from the night before")

    assert (block[0][12], block[0][13]) == (-1, "CHECK")
    assert str(rows_on(spoilt, "Summary")[0][0]).startswith("NOT PROVEN · ")
