import pyarrow as pa
import pytest

from recon.config.file_layouts import FileLayout
from recon.files.typing.amounts import (
    amounts_in_standard_form,
    less_debits,
    plain_amount,
    with_short_decimals,
    with_turned_sign,
    without_own_minus,
)
from recon.files.typing.text_cells import CellProblems

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
    """One cell and a column of it read alike; a misplaced sign is a problem, never a number."""
    problems: dict[int, str] = {}
    cells = pa.array([text], pa.large_string())
    read = amounts_in_standard_form(cells, layout=layout, numbers=None, problems=problems)
    assert plain_amount(text, layout=layout) == plain
    assert read.to_pylist() == [plain or ""]
    assert bool(problems) == (plain is None)


def test_a_row_adds_or_takes_and_never_both() -> None:
    """The second column is subtracted; both filled, or a minus in either, is a problem."""
    added = pa.array(["5.00", "", "0.00", "5.00", "", "-5.00", "", "0.00"], pa.large_string())
    taken = pa.array(["", "7.00", "7.00", "7.00", "-7.00", "", "", ""], pa.large_string())
    problems: dict[int, str] = {}
    merged = less_debits(added, debits=taken, problems=problems)
    assert merged.to_pylist() == ["5.00", "-7.00", "-7.00", "", "", "", "", "0.00"]
    assert sorted(problems) == [3, 4, 5]


def test_what_is_subtracted_may_bear_a_minus_of_its_own() -> None:
    """Where it does in one row it does in all: a row without one is refused."""
    problems: CellProblems = {}
    debits = pa.array(["-50.00", "", "0.00", "7.00"], pa.large_string())

    bare = without_own_minus(debits, problems=problems)

    assert bare.to_pylist() == ["50.00", "", "0.00", ""]
    assert [*problems] == [3]


def test_zeros_that_a_program_leaves_out_are_put_back() -> None:
    """As many as the currency has decimals, and nothing else is changed."""
    cells = pa.array(["12.5", "12", "-0.5", "12.55", "12", "1.25", "", "x", "12.3456"])
    codes = pa.array(["EUR", "EUR", "EUR", "EUR", "JPY", "KWD", "EUR", "EUR", "EUR"])

    assert with_short_decimals(cells, currencies=codes).to_pylist() == [
        *("12.50", "12.00", "-0.50", "12.55", "12", "1.250", "", "x", "12.3456"),
    ]


def test_a_turned_sign_turns_all_but_nothing() -> None:
    """What was negative is positive; 0 and blank stay what they are."""
    cells = pa.array(["-1.20", "3.00", "0.00", "-0.00", ""], pa.large_string())
    assert with_turned_sign(cells).to_pylist() == ["1.20", "-3.00", "0.00", "0.00", ""]
