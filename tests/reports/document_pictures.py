"""The pictures that the documents show, drawn into docs/images by a target.

Sheets of the demo's night and of the close of its month, what `recon demo` writes to a
terminal, and the pages of Prefect that campaign `prefect-forms` has left in out/pages.
Only what a document shows.
"""

import re
import shutil
import sys
from html import escape
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from recon.model.errors import ConfigurationError
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.reports.pictures import picture_the_documents

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "out" / "pages"
DEMO = ROOT / "out" / "demo"
WORKBOOKS = {"reconciliation-*.xlsx": "sheet", "close-*.xlsx": "close"}
"""Workbooks of the demo -> how the names of their pictures begin."""
SHOWN = re.compile(r"images/([a-z0-9-]+\.png)")
TERMINAL = "terminal-demo.png"
TERMINAL_SIZE: ViewportSize = {"width": 1_100, "height": 200}
TERMINAL_PAGE = """<body style="margin:0;background:#1e1e1e"><pre style="margin:0;padding:16px;
white-space:pre-wrap;color:#ddd;font:14px/1.4 'DejaVu Sans Mono',monospace">
$ make demo\n{text}</pre>"""


def shown_by_documents() -> set[str]:
    """The names of the pictures that some document shows."""
    documents = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    return {name for path in documents for name in SHOWN.findall(path.read_text())}


def picture_the_terminal(text: str, *, target: Path) -> Path:
    """What a program wrote, as a terminal shows it; the folder of this checkout is left out."""
    page_text = TERMINAL_PAGE.format(text=escape(text.replace(f"{ROOT}/", "")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport=TERMINAL_SIZE)
        page.set_content(page_text)
        page.screenshot(path=target, full_page=True)
        browser.close()
    return target


def draw_demo(folder: Path) -> list[Path]:
    """Sheets and terminal of the demo's night."""
    drawn = [
        picture
        for pattern, prefix in WORKBOOKS.items()
        for picture in picture_the_documents(
            DEMO / "reports", folder=folder, pattern=pattern, prefix=prefix
        )
    ]
    text = (ROOT / "out" / "terminal.txt").read_text()
    return [*drawn, picture_the_terminal(text, target=folder / TERMINAL)]


def copy_pages(folder: Path) -> list[Path]:
    """The pages of Prefect that a document shows.

    Raises:
        ConfigurationError: the browser's run left no picture of that name.
    """
    wanted = sorted(name for name in shown_by_documents() if name.startswith("prefect-"))
    if missing := [name for name in wanted if not (PAGES / name).exists()]:
        msg = f"no {', '.join(missing)} in {PAGES}: run campaign `prefect-forms` first"
        raise ConfigurationError(msg)
    return [Path(shutil.copy(PAGES / name, folder / name)) for name in wanted]


def main(kind: str, *, folder: Path) -> None:
    """Draw or copy, and take away what no document shows."""
    shown = shown_by_documents()
    for picture in {"demo": draw_demo, "prefect": copy_pages}[kind](folder):
        if picture.name in shown:
            sys.stdout.write(f"{picture}\n")
        else:
            picture.unlink()


if __name__ == "__main__":
    main(sys.argv[1], folder=ROOT / "docs" / "images")
