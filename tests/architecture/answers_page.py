"""The answers of docs/SQL.md; `python -m tests.architecture.answers_page` plays and writes them."""

import io
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

from recon import cli

PAGE = Path(__file__).parents[2] / "docs" / "SQL.md"
PLAYED = (["demo", "--orders", "60"], ["demo", "--to", "2026-11-23"])
"""The nights that are asked, as the page says."""
ROWS_SHOWN_MAX = 5
_ASKED = re.compile(r"([^\n]+):\n\n```sql\n(.*?)```\n(?:\n```\n(.*?)```\n)?", re.DOTALL)


def questions(text: str) -> dict[str, str]:
    """Question -> its SELECT, as they stand on the page."""
    return {hit[1]: hit[2] for hit in _ASKED.finditer(text)}


def shown(text: str) -> dict[str, str]:
    """Question -> the answer that stands on the page."""
    return {hit[1]: hit[3] or "" for hit in _ASKED.finditer(text)}


def answers(folder: Path) -> dict[str, str]:
    """Play the nights into a folder and ask every question of the page, by the commands."""
    for words in PLAYED:
        assert cli.main([words[0], "--dir", str(folder), *words[1:]]) == 0
    lines = (folder / "env").read_text("utf-8").splitlines()
    before = dict(os.environ)
    os.environ.update(line.split("=", 1) for line in lines)
    try:
        asked = questions(PAGE.read_text("utf-8"))
        return {question: _answer(statement) for question, statement in asked.items()}
    finally:
        os.environ.clear()
        os.environ.update(before)


def _answer(statement: str) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        assert cli.main(["sql", statement]) == 0
    *rows, count = said.getvalue().splitlines()
    more = ["…"] if len(rows) - 1 > ROWS_SHOWN_MAX else []
    return "\n".join((*(row.rstrip() for row in rows[: ROWS_SHOWN_MAX + 1]), *more, count)) + "\n"


def page(given: Mapping[str, str]) -> str:
    """The whole page with these answers."""

    def with_answer(hit: re.Match[str]) -> str:
        return f"{hit[1]}:\n\n```sql\n{hit[2]}```\n\n```\n{given[hit[1]]}```\n"

    return _ASKED.sub(with_answer, PAGE.read_text("utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        PAGE.write_text(page(answers(Path(temporary) / "demo")), "utf-8")
