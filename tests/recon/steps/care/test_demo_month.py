import re
import shlex
from pathlib import Path

import openpyxl
import pytest

from recon import cli

ROOT = Path(__file__).parents[4]
ENDS_WITH = re.compile(r"ends with (\d)")
FEW = ["--orders", "60"]


def lines_of_page() -> list[str]:
    """The commands of docs/MONTH.md that close the demo's month, as they stand there."""
    page = (ROOT / "docs/MONTH.md").read_text().split("### On the demo, by commands")[1]
    return page.split("```")[1].strip().splitlines()


def take_over(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell does by `set -a; . out/demo/env; set +a`."""
    for line in env.read_text().splitlines():
        name, value = line.split("=", 1)
        monkeypatch.setenv(name, value)


@pytest.mark.timeout(1_800)
def test_the_demos_month_is_closed_handed_out_and_reopened_by_the_commands_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line of the page, typed as it is, ends as the page says; the workbook is CLOSED."""
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    for line in lines_of_page():
        if line.startswith("set -a"):
            take_over(tmp_path / "out/demo/env", monkeypatch)
            continue
        command, _, comment = line.partition("#")
        words = shlex.split(command)[1:]
        expected = ENDS_WITH.search(comment)

        code = cli.main([*words, *FEW] if words == ["demo"] else words)

        told = capsys.readouterr()
        assert code == int(expected[1] if expected else 0), (line, told)
        said[" ".join(words)] = told.out + told.err

    assert "HIGH: no owner" in said["close 2026-11"] or "WITH OPEN" in said["close 2026-11"]
    assert "2026-11: CLOSED on 2026-12-01" in said["close 2026-11 --sign approver --as anna"]
    (exported,) = (words for words in said if words.startswith("journals export"))
    assert re.search(r"[1-9]\d* journals of 2026-11, close 1", said[exported])
    reopened = [text for words, text in said.items() if words.startswith("reopen")]
    assert "REOPENED: 2026-11" in reopened[-1]
    path = next((tmp_path / "out/demo/reports").glob("close-*-2026-11-closed.xlsx"))
    assert openpyxl.load_workbook(path, data_only=True)["Close"]["A3"].value == "CLOSED"
