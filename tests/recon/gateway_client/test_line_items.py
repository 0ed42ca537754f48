import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client.payments import LineItem, _parts, decoded_items, encoded_items

PART = st.text(alphabet="#,;0a", max_size=4)


def test_items_are_one_text() -> None:
    """`#;#` between items, `#,#` between parts, 0 for an empty part."""
    items = (LineItem("Tea", "T1", "20.00", "2"), LineItem("Cup, blue", "", "3.50", "1"))

    assert encoded_items(items) == "Tea#,#T1#,#20.00#,#2#;#Cup, blue#,#0#,#3.50#,#1"


@given(st.lists(st.builds(LineItem, PART, PART, PART, PART), max_size=3))
def test_what_was_encoded_decodes_to_the_same(items: list[LineItem]) -> None:
    """Any parts come back, or are refused; 0 stands for nothing."""
    try:
        text = encoded_items(items)
    except ValueError:
        return
    as_sent = [["" if part == "0" else part for part in _parts(i)] for i in items]

    assert decoded_items(text) == (tuple(LineItem(*parts) for parts in as_sent), ())


@pytest.mark.parametrize("name", ["a#,#b", "a#;#b", ";"])
def test_a_part_that_would_split_is_refused(name: str) -> None:
    """A name must not add items to an order."""
    with pytest.raises(ValueError, match="separator"):
        encoded_items([LineItem("1", name, "1.00", "1")])


def test_pieces_of_other_than_four_parts_are_given_back() -> None:
    """Good items and bad pieces, both."""
    good, bad = decoded_items("a#,#b#,#c#,#d#;#a#,#b#;#")

    assert (good, bad) == ((LineItem("a", "b", "c", "d"),), ("a#,#b",))
