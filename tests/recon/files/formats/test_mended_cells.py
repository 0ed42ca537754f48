import csv
import io
import random
from pathlib import Path

import pytest

from recon.files.formats.raw_reader import TOLD_COLUMNS, read_raw
from recon.privacy.shown_text import defused

FORMULAS = [
    "=1+1",
    "+49 30 1234",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "'=1+1",
    "a;=HYPERLINK(1)",
    "a\t@x",
    "\uff1d1",
    "|=x",
]


def read(folder: Path, *cells: str) -> list[str]:
    """What our reader makes of a mended file with these cells in one column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["reason", *TOLD_COLUMNS])
    writer.writerows([cell, "2", "reason", "x", "y"] for cell in cells)
    path = folder / "mended-1.csv"
    path.write_text(out.getvalue())
    return read_raw(path, wanted={"reason"}).columns["reason"].to_pylist()  # type: ignore[no-any-return] # texts


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_spreadsheet_runs_a_cell_and_ours_reads_it_as_it_was(
    formula: str, tmp_path: Path
) -> None:
    """Behind an apostrophe it is text; read back it is what the merchant wrote."""
    written = defused(formula)
    assert not any(part[:1] in "=+-@\uff1d" for part in written.replace("\t", ";").split(";"))
    assert read(tmp_path, written) == [formula]


@pytest.mark.parametrize("text", ["-5", "-10.50", "12", "O'Neil", "A-1", "a = b", "'quoted'", ""])
def test_what_is_no_formula_stays(text: str, tmp_path: Path) -> None:
    """Plain numbers, too, which a person must be able to mend."""
    assert defused(text) == text
    assert read(tmp_path, text) == [text]


def test_every_text_comes_back(tmp_path: Path) -> None:
    """Whatever apostrophes, signs and separators stand in it."""
    dice = random.Random(7)
    signs = "=+-@';|a1 .\uff1d"
    texts = ["".join(dice.choices(signs, k=dice.randrange(1, 12))).strip() for _ in range(5_000)]
    assert read(tmp_path, *map(defused, texts)) == texts
