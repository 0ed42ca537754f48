"""A file cut in half that reads as a whole one is told with its figures."""

from pathlib import Path

import pytest

from recon.model.terms import SourceFile, SourceKind
from recon.steps.files.arrived_rows import short_of
from recon.steps.night.report import Workbooks

USUAL = [
    ("orders-2026-11-19.csv", 40),
    ("orders-2026-11-18.csv", 44),
    ("orders-2026-11-17.csv", 42),
]


def _file(rows, name="orders-2026-11-20.csv"):
    return SourceFile(SourceKind.ORDERS, name, "0" * 64, 1, rows, rows, 0, 0)


@pytest.mark.parametrize(
    ("rows", "earlier", "told"),
    [
        (20, USUAL, True),
        (21, USUAL, False),  # half of the usual
        (20, USUAL[:2], False),  # nobody knows what is usual
        (20, [*USUAL[:2], ("other-3.csv", 42)], False),  # another sender
        (5, [(f"orders-2026-10-{n}.csv", 4000 if n == 10 else 6) for n in range(10, 20)], False),
        (0, USUAL, True),
    ],
)
def test_half_of_the_usual_rows_is_told(rows, earlier, *, told):
    """Fewer than half of the median of the sender's last files, by names without their digits."""
    assert bool(short_of(_file(rows), earlier=earlier)) is told


def _nights(merchant, *, last, workbooks=None):
    paid = merchant.payments("captured")
    days = ("2026-11-20", "2026-11-23", "2026-11-24", "2026-11-25")
    for day, rows in zip(days, (8, 8, 8, last), strict=True):
        merchant.drop(
            f"orders-{day}.csv",
            *(merchant.order(one, updated_at=f"{day}T12:00:00Z") for one in paid[:rows]),
        )
        merchant.wait(hours=72 if day == days[0] else 24)
        merchant.night(date=day, workbooks=workbooks)
    return str(merchant.told[0].sentence)


def test_a_cut_file_is_told_by_its_night_and_page_one_says_until_when_none_is(merchant):
    """Its rows are taken; as long as nobody knows what is usual, page one says what that takes."""
    plain, drawn = merchant.workbooks(), []

    def write(figures, path):
        drawn.append(figures)
        written: Path = plain.write(figures, path)
        return written

    told = _nights(merchant, last=3, workbooks=Workbooks(write=write, totals=plain.totals))

    assert "1 new order files with 3 rows accepted" in told
    assert (
        "orders-2026-11-25.csv has 3 rows; its sender's last 3 files had 8 to 8, and neither a "
        "trailer nor a control or done file says that it is whole" in told
    )
    assert merchant.told[0].figures["short_files"] == 1
    about = [[each for each in figures.not_covered if "was cut short" in each] for figures in drawn]
    unknown = (
        "whether an order file was cut short: that takes 3 earlier nights with files of "
        "its sender (orders-#-#-#.csv has {}), or files that say where they end"
    )
    assert about == [*([unknown.format(nights)] for nights in range(3)), []]


def test_a_done_file_settles_it(merchant):
    declared = merchant.folder / "config" / "merchants.toml"
    layout = '[[accounts."100042/100042001".layouts]]\nfiles = "orders-2026-11-25.csv"\n'
    declared.write_text(f'{declared.read_text()}\n{layout}done_file = ".done"\n')
    (merchant.inbox / "orders-2026-11-25.csv.done").touch()

    assert "says that it is whole" not in _nights(merchant, last=3)
