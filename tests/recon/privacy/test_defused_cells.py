import pytest

from recon.privacy.shown_text import defused


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("-2+3", "'-2+3"),
        (" @SUM(A1)", " '@SUM(A1)"),
        ("a;=HYPERLINK(1)", "a;'=HYPERLINK(1)"),
        ("-12.50", "-12.50"),
        ("order 7-1", "order 7-1"),
    ],
)
def test_a_cell_that_begins_like_a_formula_is_text(text: str, cell: str) -> None:
    """Also behind a separator that is not ours; numbers and everything else stay as they are."""
    assert defused(text) == cell
