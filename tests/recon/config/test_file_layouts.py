from pathlib import Path

import pytest
from pydantic import ValidationError

from recon.config.file_layouts import STANDARD, FileLayout, layout_of
from recon.config.settings import given_layouts
from recon.model.errors import ConfigurationError
from recon.model.terms import SourceKind


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("times", "%d.%m.%q", "%q is none of"),
        ("times", "%d.%m.%y %I:%M", "%I only with %p"),
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
def test_a_layout_that_cannot_hold_is_refused_by_its_key(key, value, told):
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
        {"net": "gross_less_fee", "negated": ("net",)},
        {"net": "gross_less_fee", "negated_rows": {"refund": ("gross", "net")}},
        {"net": "gross_less_fee", "sums": {"net": ("A", "B")}},
    ],
)
def test_settings_that_contradict_each_other_are_refused(tables):
    with pytest.raises(ValidationError):
        FileLayout.model_validate(tables)


def test_the_first_layout_that_fits_holds():
    shop, rest = FileLayout(files="shop-*.csv"), FileLayout(files="*", format="csv")
    layouts = (shop, rest)
    assert layout_of("shop-1.csv", layouts=layouts) is shop
    assert layout_of("Shop-1.csv", layouts=layouts) is rest
    assert layout_of("mended-shop-1.csv", layouts=layouts) is STANDARD
    assert layout_of("instructions-mended-shop-1.csv", layouts=layouts) is STANDARD
    assert layout_of("shop-1.csv", layouts=()) is STANDARD


GIVEN = """
[accounts."1/2"]
inbox = "what a night alone reads"
[[accounts."1/2".layouts]]
files = "shop-*.csv"
delimiter = ";"
[[accounts."1/2".gateway.layouts]]
delimiter = "|"
[accounts."1/2".ledger]
path = "books.csv"
[accounts."1/2".ledger.layout]
decimal_sign = ","
[bank."main"]
inbox = "bank"
[[bank."main".layouts]]
preamble = 2
"""


def layout_file(folder, text, *, name="layouts.toml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_each_kind_of_file_has_its_own_layouts(tmp_path):
    layouts = given_layouts([layout_file(tmp_path, GIVEN)])

    assert layouts.of(Path("in/shop-1.csv"), kind=SourceKind.ORDERS).delimiter == ";"
    assert layouts.of(Path("shop-1.csv"), kind=SourceKind.GATEWAY).delimiter == "|"
    assert layouts.of(Path("books.csv"), kind=SourceKind.LEDGER).decimal_sign == ","
    assert layouts.of(Path("main.csv"), kind=SourceKind.BANK).preamble == 2
    assert layouts.of(Path("app-1.csv"), kind=SourceKind.ORDERS) == STANDARD
    assert layouts.of(Path("shop-1.csv"), kind=SourceKind.SETTLEMENT) == STANDARD


def test_a_file_that_layouts_of_two_accounts_fit_is_refused(tmp_path):
    other = layout_file(tmp_path, GIVEN.replace("1/2", "1/3"), name="other.toml")
    again = layout_file(tmp_path, GIVEN.replace('";"', '"|"'), name="again.toml")
    first = layout_file(tmp_path, GIVEN)

    layouts = given_layouts([first, again])
    assert layouts.of(Path("shop-1.csv"), kind=SourceKind.ORDERS).delimiter == ";"
    with pytest.raises(ConfigurationError, match=r"shop-1\.csv: layouts of 1/2 and 1/3 fit it"):
        given_layouts([first, other]).of(Path("shop-1.csv"), kind=SourceKind.ORDERS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[accounts."1/2".layout]]\nfiles = "a"\n', 'accounts."?1/2'),
        ('[accounts."1/2"]\ninbax = "in"\n', "inbax"),
        ('[accounts."1/2".ledger]\npath = "l.csv"\nlayouts = []\n', "ledger.layouts"),
        ("[rules]\nx = 1\n", "rules"),
        ("x = ", "is not valid TOML"),
    ],
    ids=["misspelt", "unknown", "unknown below", "other table", "no TOML"],
)
def test_what_is_no_layout_is_refused_by_name(text, told, tmp_path):
    with pytest.raises(ConfigurationError, match=rf"layouts\.toml.*{told}"):
        given_layouts([layout_file(tmp_path, text)])
