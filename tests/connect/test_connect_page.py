"""docs/CONNECT.md, command by command in one shell, as somebody new would paste it.

Its first part goes from three exports that nobody prepared to a first workbook.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openpyxl import load_workbook

from tests.connect.own_files import CODES, codes_of, written_into

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "CONNECT.md"
RECON = Path(sys.executable).with_name("recon")
TEN_MINUTES = 600
"""What the page promises, reading included."""
OWN_ORDERS = (
    "Bestellung;Betrag;Waehrung;Status;Datum\n"
    "S-1;1250,50;EUR;bezahlt;20.11.2026 09:30\n"
    "S-2;7,00;EUR;storniert;20.11.2026 10:00\n"
)
"""A file that nobody prepared for this, of which the page shows the layout."""
BEFORE = """
shopt -s expand_aliases
trap 'echo "ENDED WITH $?: $BASH_COMMAND"' ERR
"""


def blocks(kind: str) -> list[str]:
    """What stands between the page's fences of a kind; "" is the shell."""
    found: list[str] = []
    inside = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = "" if inside else line
            if inside:
                found.append(f"{line.removeprefix('```')}\n")
        elif inside:
            found[-1] += f"{line}\n"
    return [text.partition("\n")[2] for text in found if text.partition("\n")[0] == kind]


@contextmanager
def sandbox(folder: Path) -> Iterator[str]:
    """The gateway of the page's other terminal; its address."""
    with (folder / "sandbox.log").open("wb") as log:
        process = subprocess.Popen([RECON, "sandbox"], cwd=folder, stdout=log, stderr=log)
    try:
        give_up_at = time.monotonic() + TEN_MINUTES
        while not (found := re.search(r"http://\S+", (folder / "sandbox.log").read_text())):
            assert time.monotonic() < give_up_at
            assert process.poll() is None
            time.sleep(0.1)
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def test_the_page_leads_to_a_first_night(tmp_path: Path) -> None:
    """Each command works, its layout is what is proposed, and a workbook lies there."""
    home, demo = tmp_path / "home", tmp_path / "demo"
    (home / "night").mkdir(parents=True)
    (home / "night" / "my-orders-1.csv").write_text(OWN_ORDERS)
    written_into(home / "night")
    (layout,) = blocks("toml")
    variables = {name: text for name, text in os.environ.items() if not name.startswith("RECON_")}
    subprocess.run([RECON, "demo", "--prepare-only", "--dir", demo], env=variables, check=True)

    with sandbox(tmp_path) as address:
        script = BEFORE + "\n".join(blocks(""))
        script = script.replace("DEMO=$PWD/out/demo", f"DEMO={demo}")
        script = re.sub(r"http://127\.0\.0\.1:\d+", address, script)
        began = time.monotonic()
        ended = subprocess.run(
            ["/bin/bash", "--norc", "-c", script],
            cwd=ROOT,
            env=variables | {"HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=TEN_MINUTES,
            check=False,
        )
    told = ended.stdout + ended.stderr
    took = time.monotonic() - began
    sys.stdout.write(f"{told}\n{took:.0f} s from the first command to the last\n")

    failed = re.findall(r"^ENDED WITH (\d+): (.*)$", told, re.MULTILINE)
    assert [code for code, _ in failed] == ["3", "3"], failed
    assert ["reconcile" in failed[0][1], "nightly" in failed[1][1]] == [True, True]
    first = home / "night" / "first"
    assert load_workbook(first / "reconciliation.xlsx").sheetnames[0] == "Summary"
    assert codes_of(first / "breaks.csv") == CODES
    assert "BREAKS OPEN: 100042/100042001, 2026-11-20 (dry run" in told
    assert "2 rows: 2 would be accepted, 0 refused" in told
    assert "WRONG" not in told
    assert (home / "night" / "layout.toml").read_text() == layout
    assert [*(home / "night" / "reports").glob("reconciliation-*.xlsx")]
