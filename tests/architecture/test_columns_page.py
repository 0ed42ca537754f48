from recon.files.typing.typed_table import _RULES
from tests.architecture.columns_page import PAGE, RULES, page


def test_the_page_of_columns_is_what_the_code_reads() -> None:
    """Every column, word, sign and rule of a row stands on the page as the readers have it."""
    assert {f"{kind} {last}" for kind, last, _ in _RULES} == set(RULES)
    assert PAGE.read_text("utf-8") == page(), "python -m tests.architecture.columns_page"
