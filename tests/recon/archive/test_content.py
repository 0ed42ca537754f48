import pyarrow as pa
import pytest

from recon.archive.content import content_digest
from recon.model.errors import Defect


def test_the_digest_is_of_what_the_rows_say_and_of_nothing_else() -> None:
    """Chunks, slices, dictionaries and their order are how rows are kept, not what they say."""
    words = pa.array(["EUR", "GBP", "EUR"])
    plain = pa.table({"currency": words, "amount": pa.array([1, 2, None])})
    other_order = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["GBP", "EUR"]))
    amounts = pa.array([9, 1, 2, None, 9])[1:4]
    kept_otherwise = pa.table(
        {
            "currency": pa.chunked_array([other_order[:1], other_order[1:]]),
            "amount": pa.chunked_array([amounts[:2], amounts[2:]]),
        }
    )

    assert content_digest(kept_otherwise) == content_digest(plain)


@pytest.mark.parametrize(
    "changed",
    [
        {"a": pa.array(["x", "yz"]), "n": pa.array([1, 0])},
        {"a": pa.array(["xy", "z"]), "n": pa.array([1, None])},
        {"a": pa.array(["xy", None]), "n": pa.array([1, 0])},
        {"a": pa.array(["xy", "z"]), "m": pa.array([1, 0])},
        {"a": pa.array(["z", "xy"]), "n": pa.array([0, 1])},
    ],
)
def test_each_difference_of_what_is_said_is_another_digest(changed: dict[str, pa.Array]) -> None:
    """A letter that moved to the next cell, a blank for a zero, another name, another order."""
    assert content_digest(pa.table(changed)) != content_digest(
        pa.table({"a": pa.array(["xy", "z"]), "n": pa.array([1, 0])})
    )


def test_a_fraction_has_no_place_in_a_night() -> None:
    """Money is never a float, not in a file either."""
    with pytest.raises(Defect, match="double"):
        content_digest(pa.table({"amount": pa.array([1.5])}))
