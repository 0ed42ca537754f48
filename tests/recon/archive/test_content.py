import pyarrow as pa
import pytest

from recon.archive.rows_file import Ordered
from recon.archive.step_folder import content_digest
from recon.model.errors import Defect


def digest_of(table: pa.Table) -> str:
    return content_digest(Ordered(table))


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

    assert digest_of(kept_otherwise) == digest_of(plain)


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
    assert digest_of(pa.table(changed)) != digest_of(
        pa.table({"a": pa.array(["xy", "z"]), "n": pa.array([1, 0])})
    )


def test_a_fraction_has_no_place_in_a_night() -> None:
    """Money is never a float, not in a file either."""
    with pytest.raises(Defect, match="double"):
        digest_of(pa.table({"amount": pa.array([1.5])}))


def test_a_digest_is_what_it_was_when_the_night_was_sealed() -> None:
    """Sealed nights are held against it for years: every kind of column, blanks or none."""
    moment = pa.scalar(1_769_000_000_000_000, pa.timestamp("us", tz="UTC"))
    columns = {
        "text": pa.array(["ä", "", None]),
        "full": pa.array(["x", "y", "z"], pa.large_string()),
        "units": pa.array([-5, None, 2**60]),
        "small": pa.array([1, 2, 3], pa.int16()),
        "is_open": pa.array([True, None, False]),
        "day": pa.array([20_000, None, 1], pa.date32()),
        "moment": pa.array([moment.value, None, 0], moment.type),
    }

    assert digest_of(pa.table(columns)) == (
        "a5bc4072cef79e2748e2d111fe7bbb3b044fb58fdeb19c5b345bba923d60158e"
    )


def test_a_digest_of_no_row_is_what_it_was_and_of_its_columns() -> None:
    """A file without a row says which columns it has, and nights were sealed with such files."""
    none = pa.table({"currency": pa.array([], pa.string()), "amount": pa.array([], pa.int64())})
    sealed = "93d1baeb81f2f618b09ea1ccaa4fd2ecb704347edbdcd00a7dde7858351fae81"

    assert digest_of(none) == digest_of(none.slice(0, 0)) == sealed
    assert digest_of(none.rename_columns(["currency", "units"])) != sealed
