import io
import unicodedata
from dataclasses import replace
from decimal import Decimal
from typing import Any

import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from recon.model.figures import NightFigures, matched_of
from recon.model.money import MINOR_UNITS_MAX
from reports.drawing.draft import NUMBER_MINOR_UNITS_MAX, Draft
from reports.drawing.plain_text import TEXT_CHARACTERS_MAX, cell_text, odd_of, plain, replaced_in
from reports.reading.workbook_check import minor_units_of
from reports.sheets import matched_sheet
from reports.sheets.ageing import BUCKETS
from reports.sheets.totals import rows_on_sheets


def read_back(draft: Draft) -> Any:
    """The first sheet's values, by another library."""
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(draft.content()))
    return workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=40))
def test_any_text_is_read_back_as_it_was_cleaned(text: str) -> None:
    """No text breaks the file, and none becomes anything but text."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("One")
    draft.text(sheet, (1, 1), "x")
    draft.text(sheet, (1, 2), text)
    found = openpyxl.load_workbook(io.BytesIO(draft.content()))["One"].cell(1, 2)

    assert (found.value or "") == cell_text(text)[0]
    assert found.data_type in {"s", "n"} if found.value is None else found.data_type == "s"


@settings(max_examples=60)
@given(
    minor_units=st.integers(-NUMBER_MINOR_UNITS_MAX * 100, NUMBER_MINOR_UNITS_MAX * 100),
    currency=st.sampled_from(["JPY", "EUR", "KWD"]),
)
def test_any_amount_is_read_back_to_the_last_minor_unit(minor_units: int, currency: str) -> None:
    """Numbers below fifteen digits and text beyond them both are exact."""
    draft = Draft(timezone="UTC")
    draft.amount(draft.sheet("One"), (1, 1), minor_units, currency)

    assert minor_units_of(read_back(draft)[0][0], currency=currency) == minor_units


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
"""Every code point there is, lone surrogates too."""
ANY_AMOUNT = st.none() | st.integers(-MINOR_UNITS_MAX, MINOR_UNITS_MAX)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.tuples(ANY_TEXT, ANY_TEXT, st.sampled_from(["JPY", "EUR", "KWD"]), ANY_AMOUNT),
        min_size=1,
        max_size=10,
    )
)
def test_any_row_written_the_fast_way_is_read_back(
    figures: NightFigures, values: list[tuple[str, str, str, int | None]]
) -> None:
    """Any text and any amount of three exponents, as another library reads the large sheet."""
    names = ("order_no", "transaction_id", "currency", "gateway_amount")
    one = next(figures.matches.batches()).iloc[[1] * len(values)].reset_index(drop=True)
    # Texts as objects: the frames' own text type has no place for half a character.
    cells = {
        name: pd.Series(column, dtype="Int64" if name == "gateway_amount" else "object")
        for name, column in zip(names, zip(*values, strict=True), strict=True)
    }
    matches = one.assign(**cells)
    night = replace(figures, matches=matched_of(matches))
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("Matched")
    matched_sheet.draw_matched(draft, sheet, figures=night, rows=rows_on_sheets(night))
    found = read_back(draft)[matched_sheet.HEADER_ROW :]

    assert len(found) == len(values)
    for cells, (order, payment, currency, amount) in zip(found, values, strict=True):
        assert [unescaped(cell) for cell in cells[:2]] == [shown(order), shown(payment)]
        assert (cells[7] == "") == (amount is None)
        assert minor_units_of(cells[7], currency=currency) == (amount or 0)


def shown(text: str) -> str:
    """What people see of a text, said in another way than the product does."""
    spaced = text.replace("\r\n", " ")
    return "".join(" " if one in "\r\n\t\u2028\u2029" else visible(one) for one in spaced)


def visible(character: str) -> str:
    """The character, or the replacement of one that cannot stand in a cell."""
    hidden = unicodedata.category(character) in {"Cc", "Cs"} or character in "\ufffe\uffff"
    overrides = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return "\ufffd" if hidden or character in overrides else character


def unescaped(cell: str) -> str:
    """A spreadsheet shows _x005F_ as the underscore; the reader leaves it as it is."""
    return cell.replace("_x005F_", "_")


@pytest.mark.parametrize(
    ("text", "shown", "replaced"),
    [
        ("a\x00b", "a\ufffdb", 1),
        ("\ud800", "\ufffd", 1),
        ("a\r\nb\tc", "a b c", 0),
        ("_x0041_", "_x005F_x0041_", 0),
        ("abc\u202etxt", "abc\ufffdtxt", 1),
        ("x" * 2_000, "x" * (TEXT_CHARACTERS_MAX - 1) + "…", 0),
    ],
)
def test_text_is_made_fit_for_a_cell(text: str, shown: str, replaced: int) -> None:
    """What would break or disguise a cell is replaced and counted; the rest stays."""
    assert cell_text(text) == (shown, replaced)


@pytest.mark.parametrize("kind", ["str", "object"])
@pytest.mark.parametrize("texts", [[], ["plain ~"], ["a\x1f", None, "b\x7f"], ["注", "", "\u202e"]])
def test_whole_columns_count_what_their_texts_do(texts: list[str | None], kind: str) -> None:
    """A column that is looked at as bytes hides no character that would have to be replaced."""
    column = pd.Series(["x", *texts, "y"], dtype=kind).iloc[1:-1]
    expected = sum(cell_text(text)[1] for text in texts if text)

    assert replaced_in(odd_of(column)) == expected


def test_blank_values_of_every_kind_are_none() -> None:
    """NA, NaT and NaN all mean that nothing was given."""
    assert [plain(value) for value in (None, pd.NA, pd.NaT, float("nan"))] == [None] * 4
    assert plain(3.0) == 3


def test_every_age_falls_into_exactly_one_bucket() -> None:
    """The row of buckets adds up to its total."""
    assert all(sum(bucket.holds(age) for bucket in BUCKETS) == 1 for age in range(400))
    assert [bucket.holds(8) for bucket in BUCKETS] == [False, False, False, True, False]
    assert BUCKETS[-1].criteria("ages") == 'ages,">=31"'


def test_a_formula_keeps_the_engines_value_as_it_was_given() -> None:
    """The value beside a formula is the engine's, digit by digit."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("One")
    draft.money_formula(sheet, (1, 1), ("1+1", 99_999_999_999_999, "EUR"))
    draft.money_formula(sheet, (1, 2), ("1+1", 10**16, "EUR"))

    assert read_back(draft)[0] == [float(Decimal("999999999999.99")), "100000000000000.00"]
