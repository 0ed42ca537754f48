"""Lists that grow with the business: sums of all rows, the first of them, and a file with all."""

from dataclasses import replace
from decimal import Decimal

import pandas as pd
import pytest

from recon.model.figures import ListFile, matched_of
from recon.proof.totals_in_sql import in_file
from reports.reading.workbook_check import companion_problems, sheet_totals
from reports.workbook import write_workbook
from tests.reports.drawn_sheets import content_of, list_on, values_of

MATCHES = ListFile("results/matches.parquet", 48, 4711, "ab" * 32)
OPEN = {
    "unverified": ListFile("results/unverified.parquet", 3, 4711, "ab" * 32),
    "pending": ListFile("results/pending.parquet", 2, 815, "cd" * 32),
}
SUMS, SINGLE = ("How it was matched", "Matched rows"), ("How it was matched", "Match key")


@pytest.fixture
def long(figures):
    """The example night, as if its lists were too many for their sheets."""
    files = {"match": MATCHES, **OPEN}
    shown = {"matched_rows_shown": 5, "open_rows_shown": 1}
    return replace(figures, list_files=files, matched_rows_max=47, open_rows_max=1, **shown)


def named(content):
    """File -> its line on Assurance."""
    lines = values_of(content, "Assurance")
    return {row[1]: row for row in lines if str(row[1])[:8] == "results/"}


@pytest.mark.parametrize("is_long", [True, False])
def test_every_match_is_in_the_sums(long, *, is_long):
    content = content_of(long if is_long else replace(long, matched_rows_max=48))
    sums = list_on(content, "Matched", *SUMS)

    assert [(row["Ccy"], row["Matched rows"], row["What explains it"]) for row in sums] == [
        ("EUR", 11, ""),
        ("EUR", 1, "rounding within the tolerance"),
        ("JPY", 12, ""),
        ("KWD", 12, ""),
        ("USD", 12, ""),
    ]
    assert Decimal(str(sums[1]["Gateway"])) == Decimal("1234567.90")
    assert len(list_on(content, "Matched", *SINGLE)) == (5 if is_long else 48)


def test_what_is_read_back_is_what_the_whole_lists_come_to(long, figures, tmp_path):
    whole = sheet_totals(write_workbook(figures, tmp_path / "whole.xlsx"))
    files = {
        in_file(section, sha256=file.sha256): file for section, file in long.list_files.items()
    }
    path = write_workbook(long, tmp_path / "long.xlsx")

    assert whole["match"] == (48, {"EUR": 1, "JPY": 0, "KWD": 0, "USD": 0})
    assert sheet_totals(path) == {
        **whole,
        **{section: (file.rows, {}) for section, file in files.items()},
    }
    assert list(companion_problems(path)) == []


def test_files_of_all_rows_are_named_where_a_list_is_cut(long):
    content = content_of(long)
    lines = named(content)

    assert {name: row[5:8] for name, row in lines.items()} == {
        file.name: [file.rows, file.size_bytes, file.sha256] for file in long.list_files.values()
    }
    for sheet, files in (("Matched", [MATCHES]), ("Pending", OPEN.values())):
        about = values_of(content, sheet)[1][0]
        assert all(file.name in about for file in files)
    whole = replace(long, matched_rows_max=48, open_rows_max=5)
    assert named(content_of(whole)) == {}


@pytest.mark.parametrize("rows_max", [49, 47], ids=["all", "first"])
def test_rows_without_an_order_stand_behind_those_with_one(figures, rows_max):
    rows = pd.concat(list(figures.matches.batches()), ignore_index=True)
    bank = rows.head(1).assign(order_no="", transaction_id="", match_id="bank")
    shown = replace(
        figures,
        matches=matched_of(pd.concat([bank, rows], ignore_index=True)),
        matched_rows_max=rows_max,
        matched_rows_shown=48,
    )

    keys = [row["Match key"] for row in list_on(content_of(shown), "Matched", *SINGLE)]
    assert keys == [*rows["match_id"], "bank"][: 49 if rows_max == 49 else 48]


def test_sets_that_are_alike_are_counted_as_many(figures, tmp_path):
    twice = pd.concat([figures.pending, figures.pending], ignore_index=True)
    alike = replace(figures, pending=twice)

    assert sheet_totals(write_workbook(alike, tmp_path / "alike.xlsx"))["pending"][0] == len(twice)


def test_of_too_many_open_sets_those_with_most_money_stand_there(long):
    """Below the sums of all stand as many rows as declared: of each currency the dearest.

    A yen is no euro: the larger number is not the larger money.
    """
    one = long.pending.iloc[0]
    rows = [("JPY", 4_000), ("JPY", 9_000), ("EUR", 300), ("EUR", 500), ("EUR", 400)]
    pending = pd.DataFrame([one] * len(rows)).astype(long.pending.dtypes)
    effects = pd.array([amount for _, amount in rows], dtype="Int64")
    pending = pending.assign(
        order_no=[f"{currency}-{amount}" for currency, amount in rows],
        currency=[currency for currency, _ in rows],
        **dict.fromkeys(("effect_orders", "effect_ledger"), effects),
    )
    night = replace(long, pending=pending, unverified=long.unverified.iloc[:0], open_rows_shown=3)
    sums, shown = (
        list_on(content_of(night), "Pending", "Result", title) for title in ("Sets", "Order no")
    )

    assert [row["Order no"] for row in shown] == ["EUR-500", "EUR-400", "JPY-9000"]
    assert sum(row["Sets"] for row in sums) == len(rows)
