import numpy as np
import pyarrow as pa
import pytest

from recon.config.file_layouts import FileLayout
from recon.files.typing.amounts import (
    AmountColumn,
    amounts_in_standard_form,
    less_debits,
    read_amounts,
    with_short_decimals,
)
from recon.files.typing.text_cells import CellProblems, distinct

GERMAN = FileLayout(decimal_sign=",", thousands_sign=".")


@pytest.mark.parametrize(
    ("layout", "text", "plain"),
    [
        (GERMAN, "1.234", "1234"),
        (GERMAN, "1.234,50", "1234.50"),
        (GERMAN, "1234,50", "1234.50"),
        (GERMAN, "1.23", None),
        (GERMAN, "1234.567", None),
        (GERMAN, "12.34,50", None),
        (GERMAN, "1.234.5", None),
        (GERMAN, "1.234,50-", None),
        (GERMAN.model_copy(update={"minus": "behind"}), "1.234,50-", "-1234.50"),
        (GERMAN.model_copy(update={"minus": "behind"}), "-1.234,50", None),
        (FileLayout(minus="brackets", thousands_sign=","), "(1,234.50)", "-1234.50"),
        (FileLayout(minus="brackets"), "(7.00", None),
        (FileLayout(minus="brackets"), "(-7.00)", None),
        (FileLayout(minus="brackets"), "7.00", "7.00"),
        (FileLayout(minus="DR"), "1.00 DR", "-1.00"),
        (FileLayout(minus="DR"), "1.00DR", "-1.00"),
        (FileLayout(minus="DR"), "1.00 CR", "1.00"),
        (FileLayout(minus="DR"), "1.00", "1.00"),
        (FileLayout(minus="DR"), "-1.00", None),
        (FileLayout(minus="DR"), "1.00 DB", None),
        (FileLayout(minus="DR"), "1.00 CR DR", None),
        (FileLayout(decimal_sign=","), "\u22121,00", "-1.00"),
        (FileLayout(minus="behind"), "1.00\u2212", "-1.00"),
        (FileLayout(currency_sign="$"), "$7.00", "7.00"),
        (FileLayout(currency_sign="$"), "$ 7.00", "7.00"),
        (FileLayout(currency_sign="$"), "7.00", "7.00"),
        (FileLayout(currency_sign="$"), "-$7.00", "-7.00"),
        (FileLayout(currency_sign="$"), "$-7.00", "-7.00"),
        (FileLayout(currency_sign="$"), "$7.00$", None),
        (FileLayout(currency_sign="$"), "$$7.00", None),
        (FileLayout(currency_sign="$"), "€7.00", None),
        (FileLayout(currency_sign="$"), "-$-7.00", None),
        (GERMAN.model_copy(update={"currency_sign": "€"}), "1.234,50 €", "1234.50"),
        (GERMAN.model_copy(update={"currency_sign": "€"}), "1.23 €", None),
        (
            FileLayout(minus="brackets", thousands_sign=",", currency_sign="US$"),
            "(US$1,234.50)",
            "-1234.50",
        ),
        (FileLayout(minus="brackets", currency_sign="$"), "$(7.00)", "-7.00"),
        (FileLayout(minus="brackets", currency_sign="$"), "($7.00", None),
        (FileLayout(minus="behind", currency_sign="$"), "$7.00-", "-7.00"),
        (FileLayout(minus="behind", currency_sign="$"), "7.00-$", "-7.00"),
    ],
)
def test_an_amount_is_what_its_layout_says_or_nothing(
    layout: FileLayout, text: str, plain: str | None
) -> None:
    """A misplaced sign is a problem, never a number."""
    problems: dict[int, str] = {}
    cells = pa.array([text], pa.large_string())
    read = amounts_in_standard_form(cells, layout=layout, numbers=None, problems=problems)
    assert read.to_pylist() == [plain or ""]
    assert bool(problems) == (plain is None)


def column(*texts: str) -> AmountColumn:
    """Amounts in euros."""
    cells = pa.array(texts, pa.large_string())
    currencies = distinct(pa.array(["EUR"] * len(texts), pa.large_string()))
    return read_amounts(cells, currencies=currencies, signed=np.ones(len(texts), dtype=bool))


def test_a_row_adds_or_takes_and_never_both() -> None:
    """The second column is subtracted; both filled, or a minus in either, is a problem."""
    added = column("5.00", "", "0.00", "5.00", "", "-5.00", "", "0.00")
    taken = column("", "7.00", "7.00", "7.00", "-7.00", "", "", "")
    problems: CellProblems = {}
    merged = less_debits(added, debits=taken, own_minus=False, problems=problems)
    assert merged.minor_units.tolist() == [500, -700, -700, 0, 0, 0, 0, 0]
    assert merged.given.tolist() == [True, True, True, False, False, False, False, True]
    assert sorted(problems) == [3, 4, 5]


def test_what_is_subtracted_may_bear_a_minus_of_its_own() -> None:
    """Where it does in one row it does in all: a row without one is refused."""
    problems: CellProblems = {}
    debits = column("-50.00", "", "0.00", "7.00")

    merged = less_debits(column("", "", "", ""), debits=debits, own_minus=True, problems=problems)

    assert merged.minor_units.tolist() == [-5000, 0, 0, 0]
    assert problems == {3: "has no minus in a column of debits that have one"}


def test_zeros_that_a_program_leaves_out_are_put_back() -> None:
    """As many as the currency has decimals, and nothing else is changed."""
    cells = pa.array(["12.5", "12", "-0.5", "12.55", "12", "1.25", "", "x", "12.3456"])
    codes = pa.array(["EUR", "EUR", "EUR", "EUR", "JPY", "KWD", "EUR", "EUR", "EUR"])

    assert with_short_decimals(cells, currencies=codes).to_pylist() == [
        *("12.50", "12.00", "-0.50", "12.55", "12", "1.250", "", "x", "12.3456"),
    ]
