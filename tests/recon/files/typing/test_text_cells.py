import pyarrow as pa
import pytest

from recon.files.typing.table_schema import Grammar
from recon.files.typing.text_cells import read_text, read_words


def test_ids_that_came_as_numbers_must_be_whole() -> None:
    """A spreadsheet's number is an id only where it holds every digit exactly."""
    cells = pa.array(["100042", "1.5", "1234567890123456", "A-1"], pa.large_string())
    numbers = pa.array([True, True, True, False])
    assert list(read_text(cells, grammar=Grammar.TRANSACTION, numbers=numbers)) == [1, 2]


def test_blank_cells_are_nobodys_problem_here() -> None:
    """Whether a cell may be blank is decided by its table."""
    cells = pa.array(["", ""], pa.large_string())
    assert read_text(cells, grammar=Grammar.ORDER_KEY, numbers=None) == {}
    assert read_words(cells, words=frozenset({"paid"})) == {}


def test_every_kind_of_order_key_of_the_contract_is_accepted() -> None:
    """Letters, digits and . _ # / : - up to fifty characters, a # in front as well."""
    keys = ["A", "#1001", "2026/11-A_1.b:c", "9" * 50, "a" * 50]
    cells = pa.array(keys, pa.large_string())
    assert read_text(cells, grammar=Grammar.ORDER_KEY, numbers=None) == {}


def test_no_line_end_slips_through_at_the_end() -> None:
    """A pattern's end is the end of the text, not the place before a last line feed."""
    cells = pa.array(["A-1\n", "\nA-1"], pa.large_string())
    assert list(read_text(cells, grammar=Grammar.ORDER_KEY, numbers=None)) == [0, 1]


@pytest.mark.parametrize(
    "reason",
    [
        "4111111111111111",
        "card 4111 1111 1111 1111",
        "2 of 4111-1111-1111-1111, late",
        "order 12 4111 1111 1111 1111",
    ],
)
def test_a_reason_that_quotes_a_card_is_refused(reason: str) -> None:
    """It would be sent to the gateway and rest in the journal; other reasons are not touched."""
    cells = pa.array(["returned", reason, "order 2026112022000000301"], pa.large_string())
    problems = read_text(cells, grammar=Grammar.REASON, numbers=None)
    assert list(problems) == [1]
    assert "card number" in problems[1]
    assert reason not in problems[1]
