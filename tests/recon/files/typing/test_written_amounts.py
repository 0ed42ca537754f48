import pyarrow as pa
import pytest

from recon.config.file_layouts import FileLayout
from recon.files.typing.written_amounts import (
    amounts_in_standard_form,
    less_debits,
    plain_amount,
    with_turned_sign,
)

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


def test_a_turned_sign_turns_all_but_nothing() -> None:
    """What was negative is positive; 0 and blank stay what they are."""
    cells = pa.array(["-1.20", "3.00", "0.00", "-0.00", ""], pa.large_string())
    assert with_turned_sign(cells).to_pylist() == ["1.20", "-3.00", "0.00", "0.00", ""]
