"""The parts of an order file: each row on its line, and what adds up over all of them."""

from pathlib import Path

import pandas as pd
import pytest

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.kinds.spooled_file import spooled_file
from recon.model.errors import SourceUnreadableError
from recon.model.words import Reject

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,note\n"
ROW = '100042,100042001,{},EUR,{},paid,2026-01-05T10:00:00Z,"said ""{}"",\nand more"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Forty orders over two lines each, some bad, and one of them with a quote out of its place."""
    rows = [ROW.format(f"A-{n}", "10.0x" if n % 9 == 4 else "10.00", n) for n in range(40)]
    rows[25] = rows[25].replace('"said', 'x"said').replace('more"', "more")
    file = tmp_path / "orders.csv"
    file.write_text(HEADER + "".join(rows))
    return file


def read(path: Path) -> tuple[list[str], tuple[Reject, ...]]:
    """The file's orders with the lines where they stood, and its rejects."""
    with spooled_file(path, rules=Rules(), layout=STANDARD, keep=True) as found:
        orders = pd.concat([part.orders for part in found.parts()], ignore_index=True)
        return [
            f"{line} {no}" for line, no in orders[["line", "order_no"]].to_numpy()
        ], found.rejects


def test_rows_and_rejects_have_their_lines_however_a_file_is_cut(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of some four rows give what one part gives, a quote out of its place among them."""
    whole = read(path)
    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", 300)

    assert read(path) == whole
    assert (len(whole[0]), len(whole[1])) == (35, 6)


def test_too_many_rows_are_counted_over_all_parts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part sees how many rows the others have."""
    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", 300)
    monkeypatch.setattr("recon.files.formats.raw_table.ROWS_MAX", 20)

    with pytest.raises(SourceUnreadableError, match=r"orders\.csv has more than 20 rows"):
        read(path)
