"""docs/CONNECT.md, command by command in one shell, as somebody new would paste it.

Its first part goes from three exports that nobody prepared to a first workbook. Beside it: what
files are is told from their contents alone, of the shapes of other programs and of the scenarios.
"""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from openpyxl import load_workbook

from recon.cli import main
from recon.steps.files.proposed_layouts import KINDS, kinds_of
from tests.connect.own_files import CODES, codes_of, written_into
from tests.recon.files.proposing.exports import ACCOUNT, MERCHANT, SHAPES, made

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "CONNECT.md"
RECON = Path(sys.executable).with_name("recon")
FIVE_MINUTES = 300
"""What the page promises from nothing to the first workbook."""
COMMANDS_MAX = 6
BEFORE = """
shopt -s expand_aliases
trap 'echo "ENDED WITH $?: $BASH_COMMAND"' ERR
"""
WORKBOOK_IS_THERE = "echo FIRST WORKBOOK after $SECONDS s\n"


def blocks():
    """What the page gives to a shell, fence by fence."""
    return re.findall(r"(?ms)^```\n(.*?)^```$", PAGE.read_text("utf-8"))


@contextmanager
def sandbox(folder):
    """The gateway of the page's other terminal; its address."""
    with (folder / "sandbox.log").open("wb") as log:
        process = subprocess.Popen([RECON, "sandbox"], cwd=folder, stdout=log, stderr=log)
    try:
        give_up_at = time.monotonic() + FIVE_MINUTES
        while not (found := re.search(r"http://\S+", (folder / "sandbox.log").read_text())):
            assert time.monotonic() < give_up_at
            assert process.poll() is None
            time.sleep(0.1)
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def test_the_page_leads_to_a_first_workbook_and_a_night(tmp_path):
    """Each command works; a first workbook is there in time and true, and then that of a night."""
    home, demo = tmp_path / "home", tmp_path / "demo"
    (home / "night").mkdir(parents=True)
    written_into(home / "night")
    variables = {name: text for name, text in os.environ.items() if not name.startswith("RECON_")}
    subprocess.run([RECON, "demo", "--prepare-only", "--dir", demo], env=variables, check=True)
    alias, asking, answered, *night = blocks()
    until_first = alias + asking + answered
    assert len(until_first.replace("\\\n", "").splitlines()) <= COMMANDS_MAX

    with sandbox(tmp_path) as address:
        script = "".join([BEFORE, until_first, WORKBOOK_IS_THERE, *night])
        script = script.replace("DEMO=$PWD/out/demo", f"DEMO={demo}")
        script = re.sub(r"http://127\.0\.0\.1:\d+", address, script)
        ended = subprocess.run(
            ["/bin/bash", "--norc", "-c", script],
            cwd=ROOT,
            env=variables | {"HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * FIVE_MINUTES,
            check=False,
        )
    told = ended.stdout + ended.stderr
    sys.stdout.write(told)

    failed = re.findall(r"^ENDED WITH (\d+): (.*)$", told, re.MULTILINE)
    assert [(code, "init" in words) for code, words in failed] == [("2", True), ("3", True)], failed
    (took,) = re.findall(r"FIRST WORKBOOK after (\d+) s", told)
    assert int(took) < FIVE_MINUTES
    first = home / "night" / "first"
    assert load_workbook(first / "reconciliation.xlsx").sheetnames[0] == "Summary"
    assert codes_of(first / "breaks.csv") == CODES
    assert "24 rows: 24 would be accepted, 0 refused" in told
    assert "BREAKS OPEN: 100042/100042001, 2026-11-20 (dry run" in told
    assert "WRONG" not in told
    assert [*(home / "try" / "reports").glob("reconciliation-*.xlsx")]


@pytest.mark.parametrize(
    "shape", [s for s in SHAPES if s.kind != "instructions"], ids=lambda shape: shape.name
)
def test_what_a_file_is_is_told_from_its_contents(shape, tmp_path, capsys):
    """Never another kind in silence; its layout is printed, or what is asked of it."""
    export = made(shape, seed=0)
    path = tmp_path / f"export{Path(export.name).suffix}"
    path.write_bytes(export.content)
    code = main(["init", "--layout-only", str(path), "--merchant", MERCHANT, "--account", ACCOUNT])
    table = KINDS[shape.kind].table.format(f"{MERCHANT}/{ACCOUNT}")

    assert code == (2 if shape.asked else 0)
    assert capsys.readouterr().out.startswith("" if shape.asked else table)
    assert kinds_of([path], account=(MERCHANT, ACCOUNT))[0] == (shape.kind,)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("ingest/fees-over-several-columns/detail.csv", "settlement"),
        ("ingest/fees-over-several-columns/crdr.csv", "settlement"),
        ("ingest/decimals-that-say-nothing/magento.csv", "orders"),
        ("ingest/decimals-that-say-nothing/three.csv", "orders"),
        ("ingest/csv-as-programs-write-it/trailing.csv", "bank"),
        ("ingest/csv-as-programs-write-it/twice.csv", "orders"),
        ("ingest/csv-as-programs-write-it/equals.csv", "orders"),
        ("ingest/csv-as-programs-write-it/scientific.csv", ""),
        ("ingest/signs-as-banks-write-them/unicode.csv", "bank"),
        ("ingest/signs-as-banks-write-them/crdr.csv", "bank"),
        ("ingest/amounts-a-spreadsheet-computed/noise.xlsx", "orders"),
        ("bank/mt940-as-banks-send-it/head.sta", ""),
    ],
)
def test_files_of_programs_are_told_apart(path, kind):
    """Exports that people sent; a message of a bank is no table."""
    told, _ = kinds_of([ROOT / "tests" / "scenarios" / path], account=(MERCHANT, ACCOUNT))
    assert told == ((kind,) if kind else ())
