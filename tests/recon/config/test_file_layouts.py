import pytest
from pydantic import ValidationError

from recon.config.file_layouts import STANDARD, FileLayout, layout_of


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("times", "%d.%m.%q", "%q is none of"),
        ("times", "%d.%m.%y %I:%M", "%I only with %p"),
        ("questions", {"zone": "which?"}, "zone: which?"),
        ("times", "%d.%m", "needs %Y, %m and %d"),
        ("times", "%Y%m%d%d", "each part once"),
        ("times", "%Y-%m-%d %M", "without the larger ones"),
        ("times", "%Y-%m-%d %H", "without the larger ones"),
        ("zone", "Europe/Lissabon", "is not a time zone"),
        ("zone", "../secret", "is not a time zone"),
        ("delimiter", "::", "Input should be"),
        ("encoding", "ebcdic", "'ebcdic' is none of utf-8, utf-16,"),
        ("control_file", "control", "should match pattern"),
        ("surprise", 1, "Extra inputs"),
    ],
)
def test_a_layout_that_cannot_hold_is_refused_by_its_key(
    key: str, value: object, told: str
) -> None:
    """A setting is refused when it is loaded, and the error names it."""
    with pytest.raises(ValidationError) as refused:
        FileLayout.model_validate({key: value})
    (problem,) = refused.value.errors()
    assert problem["loc"] == (key,)
    assert told in problem["msg"]


@pytest.mark.parametrize(
    "tables",
    [
        {"columns": {"status": "state"}, "constants": {"status": "paid"}},
        {"format": "xml", "trailer": {"word": "END"}},
        {"sums": {"fee": ("A",)}},
        {"sums": {"fee": ("A", "A")}},
        {"sums": {"fee": tuple("ABCDEFGHIJKLMNOPQ")}},
        {"sums": {"fee": ("A", "B")}, "columns": {"fee": "A"}},
        {"sums": {"fee": ("A", "B")}, "debit": {"fee": "C"}},
        {"sums": {"fee": ("A", "B")}, "constants": {"fee": "0.00"}},
        {"net": "gross_less_fee", "columns": {"net": "Net"}},
        {"net": "gross_less_fee", "turned": ("net",)},
        {"net": "gross_less_fee", "turned_rows": {"refund": ("gross", "net")}},
        {"net": "gross_less_fee", "sums": {"net": ("A", "B")}},
    ],
)
def test_settings_that_contradict_each_other_are_refused(tables: dict[str, object]) -> None:
    """A column is named once; only rows have a trailer."""
    with pytest.raises(ValidationError):
        FileLayout.model_validate(tables)


def test_the_first_layout_that_fits_holds() -> None:
    """Names are matched in order; mended files always have the columns of the contract."""
    shop, rest = FileLayout(files="shop-*.csv"), FileLayout(files="*", format="csv")
    layouts = (shop, rest)
    assert layout_of("shop-1.csv", layouts=layouts) is shop
    assert layout_of("Shop-1.csv", layouts=layouts) is rest
    assert layout_of("mended-shop-1.csv", layouts=layouts) is STANDARD
    assert layout_of("instructions-mended-shop-1.csv", layouts=layouts) is STANDARD
    assert layout_of("shop-1.csv", layouts=()) is STANDARD
