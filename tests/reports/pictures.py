"""Pictures of a workbook's sheets, as LibreOffice prints them: for the documents and for checks."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from recon.model.errors import ConfigurationError, OutputError
from recon.privacy.own_files import make_folder
from tests.reports.png import pixels_of, png_of, without_margins

PROGRAMS = ("soffice", "pdftoppm", "pdftotext")
CONVERT_SECONDS_MAX = 120
DOTS_PER_INCH = 150


def missing_programs() -> list[str]:
    """Which of the programs are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def draw_pictures(workbook: Path, *, folder: Path) -> dict[str, list[Path]]:
    """PNG pictures of every printed page: sheet -> its pages in order.

    Raises:
        ConfigurationError: LibreOffice or poppler is not installed.
        OutputError: the workbook cannot be converted.
    """
    with tempfile.TemporaryDirectory() as scratch:
        (pdf,) = convert([workbook], kind="pdf", folder=Path(scratch))
        return pictures_of(pdf, folder=folder)


def pictures_of(
    pdf: Path, *, folder: Path, dots_per_inch: int = DOTS_PER_INCH
) -> dict[str, list[Path]]:
    """PNG pictures of a printed workbook's pages, named after their sheets."""
    by_sheet: dict[str, list[Path]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        prefix = Path(scratch) / "page"
        _run("pdftoppm", "-r", str(dots_per_inch), str(pdf), str(prefix))
        pictures = sorted(Path(scratch).glob("page-*.ppm"))
        for text, picture in zip(page_texts(pdf), pictures, strict=True):
            sheet = sheet_of(text)
            number = len(by_sheet.setdefault(sheet, [])) + 1
            name = f"{sheet.lower().replace(' ', '-')}-{number}.png"
            target = folder / name
            target.write_bytes(png_of(without_margins(pixels_of(picture.read_bytes()))))
            by_sheet[sheet].append(target)
    return by_sheet


def convert(
    workbooks: Sequence[Path], *, kind: str, folder: Path, profile: Path | None = None
) -> list[Path]:
    """The workbooks converted by one LibreOffice in a profile of its own; the files written.

    Raises:
        ConfigurationError: LibreOffice is not installed.
        OutputError: nothing came out.
    """
    if missing := missing_programs():
        msg = f"{', '.join(missing)} not found: install LibreOffice Calc and poppler-utils"
        raise ConfigurationError(msg)
    with tempfile.TemporaryDirectory() as own:
        profile_uri = (profile or Path(own)).as_uri()
        _run(
            "soffice",
            f"-env:UserInstallation={profile_uri}",
            "--headless",
            "--convert-to",
            kind,
            "--outdir",
            str(folder),
            *map(str, workbooks),
        )
    written = [folder / f"{each.stem}.{kind.partition(':')[0]}" for each in workbooks]
    for workbook, path in zip(workbooks, written, strict=True):
        if not path.exists():
            msg = f"LibreOffice made no {kind} of {workbook}; the workbook itself is unchanged"
            raise OutputError(msg)
    return written


def page_texts(pdf: Path) -> list[str]:
    """The text of each page."""
    text = _run("pdftotext", "-layout", str(pdf), "-")
    return text.split("\f")[:-1]


def sheet_of(page: str) -> str:
    """The sheet a printed page belongs to, by its footer."""
    names = re.findall(
        r"^\s*(?:Run|Close|Statement) .*?\s{2,}(\S.*?)\s{2,}Page [0-9]+ of [0-9]+",
        page,
        re.MULTILINE,
    )
    # Beside a long cell of a narrow column the page's number may stand on a line of its own.
    names = names or re.findall(r"^\s*Run \d{8}-\w+\s{2,}(\S.*?)(?:\s{2,}|$)", page, re.MULTILINE)
    return str(names[-1]) if names else "unknown"


def _run(*command: str) -> str:
    program = shutil.which(command[0]) or command[0]
    try:
        done = subprocess.run(
            [program, *command[1:]],
            capture_output=True,
            check=True,
            timeout=CONVERT_SECONDS_MAX,
            text=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        msg = f"{command[0]} failed ({error}); the workbook itself is unchanged"
        raise OutputError(msg) from error
    return done.stdout


def picture_the_documents(
    reports: Path, *, folder: Path, pattern: str = "reconciliation-*.xlsx", prefix: str = "sheet"
) -> list[Path]:
    """One picture per sheet of the newest workbook: its first page as <prefix>-<name>.png.

    Raises:
        ConfigurationError: no workbook stands there, or a program is not installed.
        OutputError: the workbook cannot be converted.
    """
    workbooks = sorted(reports.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not workbooks:
        msg = f"no workbook in {reports}: run `make demo` first"
        raise ConfigurationError(msg)
    with tempfile.TemporaryDirectory() as scratch:
        drawn = draw_pictures(workbooks[-1], folder=Path(scratch))
        make_folder(folder)
        return [
            Path(shutil.copy(pages[0], folder / f"{prefix}-{sheet.lower().replace(' ', '-')}.png"))
            for sheet, pages in drawn.items()
        ]
