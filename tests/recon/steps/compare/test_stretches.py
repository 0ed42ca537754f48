"""What a night compared, read in ranges, is what it compared: every row once, no more held."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from recon.matching.frames.sources import Sources, frame_of
from recon.model.errors import ArchiveBrokenError
from recon.proof.buckets import Range
from recon.proof.night_tables import FRAMES as FILES
from recon.steps.compare.stored_sources import (
    cut_of_night,
    opened_night,
    rows_of_range,
    small_of_night,
    sources_of_night,
)
from recon.steps.runtime.night_folder import sealed_night
from recon.store.nights import runs
from tests.injected import planted
from tests.recon.steps.compare.test_selection import older, plain, priced, with_ledger
from tests.recon.steps.compare.test_siblings import (
    OTHER,
    _filed_here,
    _payment_of_other,
    _second_account,
)
from tests.recon.steps.compare.written_night import written
from tests.recon.steps.large_nights import in_groups_of, many, peak_bytes, sealed

FRAMES = ("orders", "gateway", "ledger", "universe", "settlement")
PLACE = ["merchant_id", "account_id"]
BYTES_A_ROW = 40
"""Of Arrow, of what each row more of a night may take where ranges are of one size: compressed
bytes. A row itself takes more than ten times as much."""
SMALL = Sources(
    **{field: frame_of([], columns=columns) for field, columns in FILES.values()}  # type: ignore[arg-type]  # mypy knows no frame by its field
)
"""Every source was given."""


def newest(merchant):
    """The night that finished last."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, runs.finished(connection)[-1].run_id)
        return sealed_night(connection, run, environment=environment)


def in_ranges(night, *, rows, small=SMALL):
    """A night cut into ranges of about so many rows, and the rows of each."""
    cut = cut_of_night(night, small=small, previous=None, rows_per_bucket=rows)
    return cut.ranges, [rows_of_range(night, each, small=small) for each in cut.ranges]


def assert_whole(night, *, rows):
    """Every row is in one range, and together they are what was compared; how many there are."""
    (whole, _), (small, _) = sources_of_night(night), small_of_night(night)
    cut, parts = in_ranges(night, rows=rows, small=small)
    assert [each.number for each in cut] == [*range(1, len(cut) + 1)]
    numbers: set[str] = set()
    for part in parts:
        own = {name for field in FRAMES for name in numbers_of(part, field)}
        assert not own & numbers
        numbers |= own
    for field in FRAMES:
        expected = getattr(whole, field)
        frames = [getattr(part, field) for part in parts]
        if expected is None:
            assert frames == [None] * len(parts)
            continue
        joined = pd.concat(frames, ignore_index=True).sort_values(PLACE, kind="stable")
        pd.testing.assert_frame_equal(joined.reset_index(drop=True), expected)
    return len(cut)


def assert_others(night):
    """What does not lie in ranges is read as it is of the whole night, and no row of these."""
    (whole, before), (small, previous) = sources_of_night(night), small_of_night(night)
    for each in fields(Sources):
        own, expected = getattr(small, each.name), getattr(whole, each.name)
        if each.name in FRAMES:
            assert (own is None) is (expected is None)
            assert own is None or (len(own), [*own]) == (0, [*expected])
        elif isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(own, expected)
        else:
            assert own == expected
    assert (previous is None) is (before is None)


def numbers_of(sources, field):
    """The order numbers of a frame; none of one that was not given."""
    frame = getattr(sources, field)
    return [] if frame is None else frame["order_no"].tolist()


def asked_again(merchant):
    """Captures, whose answers are asked again once money has moved."""
    paid = merchant.payments("authorised")[:5]
    merchant.drop("orders.csv", *(merchant.order(each, action="capture") for each in paid))


def joined(merchant):
    """An order that was paid in the merchant's other account, and one that was filed there."""
    plain(merchant)
    _second_account(merchant)
    merchant.drop("here.csv", _filed_here(_payment_of_other(merchant)))
    paid = merchant.payments("captured")[8]
    merchant.drop("there.csv", merchant.order(paid) | {"account_id": OTHER})
    with_ledger(merchant, ("L1", paid.order_no, "capture", paid.amount, "2026-11-20T12:00:00Z"))


def booked(merchant):
    """Entries of the window without an order number, and of orders that nobody has."""
    older(merchant)
    with (merchant.folder / "ledger.csv").open("a") as file:
        names = (merchant.folder / "ledger.csv").read_text().splitlines()[0].split(",")
        for number in range(4):
            cells = {
                "entry_id": f"B{number}",
                "merchant_id": "100042",
                "account_id": "100042001",
                "order_no": "" if number % 2 else f"~{number}",
                "entry_type": "fee",
                "currency": "EUR",
                "amount": "1.00",
                "booked_at": "2026-11-20T12:00:00Z",
            }
            file.write(",".join(cells.get(name, "") for name in names) + "\n")


@pytest.mark.parametrize("arrived", [asked_again, joined, booked, priced])
def test_all_ranges_together_are_what_was_compared(merchant, arrived):
    """However many there are: answers after money, other accounts, entries without an order."""
    arrived(merchant)
    merchant.night()
    night = newest(merchant)

    counts = [assert_whole(night, rows=rows) for rows in (1, 9, 10_000)]
    assert counts[0] > counts[1] > counts[2] == 1
    assert_others(night)


@given(
    seed=st.integers(min_value=0, max_value=10_000),
    size=st.integers(min_value=1, max_value=60),
    rows=st.integers(min_value=1, max_value=300),
    group=st.integers(min_value=1, max_value=30),
    ledger=st.booleans(),
    settled=st.booleans(),
)
@settings(max_examples=12, phases=[Phase.generate], deadline=None)
def test_any_night_is_cut_where_any_number_ends(seed, size, rows, group, *, ledger, settled):
    """Of several accounts, with repeats, in files of several row groups, with books or without."""
    night = planted(size=size, broken=size // 3, seed=seed, settled=settled)
    other = night.sources.orders.assign(account_id="another")
    mixed = pd.concat([night.sources.orders, other.iloc[::2]]).sample(frac=1, random_state=seed)
    sources = replace(night.sources, orders=mixed.reset_index(drop=True))
    if not ledger:
        sources = replace(sources, ledger=None)
    if sources.settlement is not None:
        lines = range(len(sources.settlement))
        brands = [("", "visa", "card")[number % 3] for number in lines]
        told = sources.settlement.assign(brand=brands, line=[*lines])
        sources = replace(sources, settlement=told)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        in_groups_of(group, patch=patched)
        part = written(Path(folder), sources=sources, rules=night.rules)
        assert_whole(opened_night(part, variables={}), rows=rows)


def test_a_range_has_about_as_many_rows_as_it_should(tmp_path):
    """Of whichever file; of the last one what is left; a number that many rows have is one."""
    orders = many("orders", rows=1_000)
    night = sealed(tmp_path / "even", tables={"orders": orders})
    sizes = [len(part.orders) for part in in_ranges(night, rows=300)[1]]
    assert sizes == [300, 300, 300, 100]

    at = orders.schema.get_field_index("order_no")
    numbers = ["", *["A"] * 700, *(f"B{number:03}" for number in range(299))]
    crowded = orders.set_column(at, orders.schema.field(at), pa.array(numbers))
    night = sealed(tmp_path / "crowded", tables={"orders": crowded})
    cut, parts = in_ranges(night, rows=300)
    assert [(each.first, each.after) for each in cut] == [
        *(("", "B000"), ("B000", "B199"), ("B199", ""))
    ]
    assert [len(part.orders) for part in parts] == [701, 199, 100]

    night = sealed(tmp_path / "books", tables={"ledger": many("ledger", rows=2_000)})
    parts = in_ranges(night, rows=400)[1]
    assert [len(part.ledger) for part in parts if part.ledger is not None] == [400] * 5


def test_a_night_without_a_row_is_one_range(tmp_path):
    """It has no end, so nothing is left beside it."""
    cut, (part,) = in_ranges(sealed(tmp_path, tables={}), rows=10)

    assert cut == (Range(1, "", ""),)
    assert not len(part.orders)


def test_a_file_that_was_changed_is_refused_however_often_it_was_read(tmp_path):
    """Changed before the first range or between two, it is named; so is one that is gone."""
    night, whole = (
        sealed(tmp_path, tables={"orders": many("orders", rows=100)}),
        Range(1, "", ""),
    )
    rows_of_range(night, whole, small=SMALL)
    file = tmp_path / "night" / "inputs" / "orders.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    with pytest.raises(ArchiveBrokenError, match=r"inputs/orders.parquet is not the file that was"):
        rows_of_range(night, whole, small=SMALL)

    file.write_bytes(content[:-1])
    with pytest.raises(ArchiveBrokenError, match=r"has [0-9]+ bytes, and was sealed with"):
        rows_of_range(night, whole, small=SMALL)

    file.unlink()
    with pytest.raises(ArchiveBrokenError, match=r"orders.parquet is gone from the archive"):
        rows_of_range(night, whole, small=SMALL)


def test_what_is_held_grows_with_the_range_and_not_with_the_night(tmp_path, monkeypatch):
    """Four times the rows, cut and read one range after another, take next to nothing more."""
    in_groups_of(10_000, patch=monkeypatch)
    few, many_rows = (peak_of(tmp_path / str(rows), rows=rows) for rows in (40_000, 160_000))
    assert many_rows - few < BYTES_A_ROW * 120_000


def peak_of(folder, *, rows):
    """What Arrow holds at most while a night is read in ranges of 10,000 orders."""
    names = ("orders", "answers", "ledger", "universe", "settlement", "tariffs")
    tables: Mapping[str, pa.Table] = {name: many(name, rows=rows) for name in names}
    night = sealed(folder, tables=tables)

    def read():
        cut = cut_of_night(night, small=SMALL, previous=None, rows_per_bucket=50_000)
        for each in cut.ranges:
            assert len(rows_of_range(night, each, small=SMALL).orders) == 10_000

    return peak_bytes(read)
