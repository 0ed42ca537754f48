"""From the release before to this one, by the commands of docs/OPERATIONS.md alone."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EARLIER = Path(__file__).parent / "earlier.tar.xz"
NIGHT, NEXT = "2026-11-20", "2026-11-23"
COMMAND = "from recon.cli import main; raise SystemExit(main())"
IN_DOUBT = re.compile(r"in doubt: .*\[([0-9a-f]{20})\]")


class Operator:
    """Whoever has the folder and a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = (folder / "env").read_text("utf-8").splitlines()
        self.variables = dict(line.split("=", 1) for line in lines)
        self.variables.pop("RECON_BUSINESS_DATE")

    def types(self, *words: str) -> tuple[int, str]:
        """`recon …`: its exit code and what it says."""
        ran = subprocess.run(
            [sys.executable, "-c", COMMAND, *words],
            cwd=self.folder,
            env=os.environ | self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """`recon sandbox` over the state that the night before left."""
        words = ["sandbox", "--state", "sandbox.sqlite", "--port", "0"]
        with subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            line = next(line for line in running.stdout if "http://127.0.0.1:" in line)
            self.variables["RECON_GATEWAY_BASE_URL"] = re.findall(r"http://127[.0-9:]+", line)[0]
            try:
                yield
            finally:
                running.terminate()


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """The folder as it was left."""
    # Python before 3.11.4 (Debian 12 has 3.11.2) knows no filter; the archive is our own.
    kept = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(EARLIER, tmp_path, **kept)
    return Operator(tmp_path)


@pytest.mark.process
def test_an_operator_upgrades_and_plays_the_next_night(operator: Operator) -> None:
    """Proof and doubts of the night before are there afterwards, and the next night goes on."""
    code, words = operator.types("db", "upgrade")
    assert code == 2
    assert "rules.toml: fee: is called fees since 0.2.0 and means the same; rename it" in words
    rules = operator.folder / "config" / "rules.toml"
    rules.write_text(rules.read_text("utf-8").replace("[fee.", "[fees."), "utf-8")
    code, words = operator.types("nights")
    assert code in {1, 2}
    assert "recon db upgrade" in words
    code, words = operator.types("db", "upgrade")
    assert code == 0, words

    # The most urgent stands first, which is another one on another day.
    before = sorted(IN_DOUBT.findall((operator.folder / "status.txt").read_text("utf-8")))
    code, words = operator.types("status")
    assert code == 5
    assert sorted(IN_DOUBT.findall(words)) == before
    assert len(before) == 5
    assert operator.types("verify")[0] == 0
    code, words = operator.types("verify", NIGHT)
    assert code == 0, words

    code, words = operator.types("compare-again", NIGHT)
    assert code in {0, 1}
    assert "Its inputs are all there" in words or code == 0

    with operator.gateway():
        code, words = operator.types("nightly", "--business-date", NEXT)
        assert code == 5, words
        assert "0 control totals failed" in words
        assert operator.types("verify")[0] == 0
        assert operator.types("verify", NEXT)[0] == 0
    assert sorted(IN_DOUBT.findall(operator.types("status")[1])) == before


@pytest.mark.process
def test_a_changed_workbook_of_the_night_before_is_noticed(operator: Operator) -> None:
    """Workbook and statements of the old night are held to their seal after the upgrade."""
    rules = operator.folder / "config" / "rules.toml"
    rules.write_text(rules.read_text("utf-8").replace("[fee.", "[fees."), "utf-8")
    assert operator.types("db", "upgrade")[0] == 0
    (proof,) = operator.folder.glob("archive/nights/*/*/*/*/proof")
    for name in ("workbook.xlsx", "T04_money.sql"):
        kept = (proof / name).read_bytes()
        (proof / name).write_bytes(kept[:-1] + b" ")
        code, words = operator.types("verify", NIGHT)
        assert (code, name in words) == (1, True), words
        (proof / name).write_bytes(kept)
    shutil.rmtree(proof)
    code, words = operator.types("verify", NIGHT)
    assert code == 1, words
