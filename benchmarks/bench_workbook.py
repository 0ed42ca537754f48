"""CPU and memory of the workbook beside other writers of the same rows; each in its own process.

`make bench-workbook`. WORKBOOK_ROWS (200,000), WORKBOOK_LARGE (1,000,000). XlsxWriter is fetched
into an environment of its own; without it recon's figures stand alone.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from datetime import date
from pathlib import Path

import workbook_contenders as contenders
from openpyxl import load_workbook
from peers import peer_command

from reports.sheets.breaks_sheet import ANSWERS, COLUMNS, HEADER_ROW
from reports.workbook import write_workbook

ROWS = int(os.environ.get("WORKBOOK_ROWS", "200000"))
LARGE = int(os.environ.get("WORKBOOK_LARGE", "1000000"))
SMALL = 10_000
NIGHT_ORDERS = 12_000
ANSWERED = 1_000
ROUNDS = 3
"""Of each contender, in turn; the least CPU counts: a shared machine only ever adds."""
SECONDS_MAX = 600
AIM_TO_XLSXWRITER = 1.5
AIM_PEAK = 1.2
AIM_IMPORT_SECONDS = 2.0
SHEET = "xl/worksheets/sheet6.xml"


def cost(name: str, rows: int, folder: Path, *, python: list[str]) -> dict[str, float]:
    """CPU seconds and peak MiB of one contender."""
    script = str(Path(contenders.__file__))
    done = subprocess.run(  # noqa: S603 - our own script
        [*python, script, name, str(rows), str(folder)],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def least(figures: list[dict[str, float]]) -> float:
    """The least CPU of the rounds."""
    return min(figure["cpu"] for figure in figures)


def writers(folder: Path) -> None:
    """The rows of Matched, by recon and by its peers, interleaved."""
    ours = [sys.executable]
    pythons = {"recon": ours, "zlib_of_the_same": ours, "openpyxl_write_only": ours, "as_csv": ours}
    peer = peer_command(["xlsxwriter==3.2.9"], imports=["xlsxwriter"], seconds_max=SECONDS_MAX)
    if peer is not None:
        pythons["xlsxwriter_constant_memory"] = peer
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    for _ in range(ROUNDS):
        for name, python in pythons.items():
            figures[name].append(cost(name, ROWS, folder, python=python))
            if name == "recon":
                with (
                    zipfile.ZipFile(folder / "recon.xlsx") as book,
                    book.open(SHEET) as sheet,
                    (folder / "sheet.xml").open("wb") as file,
                ):
                    shutil.copyfileobj(sheet, file)
    own = least(figures["recon"])
    print(f"Matched, {ROWS:,} rows x {contenders.COLUMNS} columns, CPU, least of {ROUNDS}:")
    for name in pythons:
        of_it = "" if name == "recon" else f"   recon is {own / least(figures[name]):.2f}x"
        peak = max(figure["peak_mib"] for figure in figures[name])
        print(f"  {name:28} {least(figures[name]):7.2f} s {peak:6.0f} MiB{of_it}")
    size = (folder / "recon.xlsx").stat().st_size
    print(f"  recon's file: {size / 1e6:.1f} MB; aim: {AIM_TO_XLSXWRITER}x of XlsxWriter")


def memory(folder: Path) -> None:
    """Peak memory of a small, a full and a large night."""
    peaks = {
        rows: cost("recon", rows, folder, python=[sys.executable])["peak_mib"]
        for rows in (SMALL, ROWS, LARGE)
    }
    for rows, peak in peaks.items():
        print(f"  {rows:>9,} matches: {peak:.0f} MiB, {peak / peaks[SMALL]:.2f}x")
    print(f"  aim: {AIM_PEAK}x from {SMALL:,} to {LARGE:,}")


def answered(folder: Path) -> None:
    """A workbook whose breaks somebody answered."""
    written = write_workbook(contenders.night(0, breaks=ANSWERED), folder / "form.xlsx")
    book = load_workbook(written)
    titles = [column.title for column in COLUMNS]
    words = ("Ledger corrected", "Dan Orr", "seen", date(2026, 11, 22), None)
    for row in range(HEADER_ROW + 1, HEADER_ROW + 1 + ANSWERED):
        for title, word in zip(ANSWERS, words, strict=True):
            book["Breaks"].cell(row, titles.index(title) + 1).value = word
    book["Breaks"].data_validations.dataValidation = []
    book.save(folder / "answered.xlsx")


def main() -> None:
    """All figures, as a table for people."""
    ours = [sys.executable]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writers(folder)
        print("Peak memory of writing one night:")
        memory(folder)
        night = min(
            (cost("whole_night", NIGHT_ORDERS, folder, python=ours) for _ in range(ROUNDS)),
            key=lambda figures: figures["cpu"],
        )
        rows = least([cost("as_csv", NIGHT_ORDERS, folder, python=ours) for _ in range(ROUNDS)])
        ratio = night["cpu"] / rows
        print(f"A night of {NIGHT_ORDERS:,} orders and 300 breaks: {night['cpu']:.2f} s CPU,")
        print(f"  {ratio:.0f}x the same rows as CSV ({rows:.3f} s)")
        answered(folder)
        seconds = cost("returned", ANSWERED, folder, python=ours)["cpu"]
        print(f"{ANSWERED:,} answered breaks read back and compared: {seconds:.2f} s CPU")
        print(f"  aim: {AIM_IMPORT_SECONDS} s (without the database)")


if __name__ == "__main__":
    main()
