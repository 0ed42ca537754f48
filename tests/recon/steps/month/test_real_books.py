"""Journals taken in by the programs that they are for: hledger and beancount themselves."""

import csv
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.recon.steps.month.book_readers import sums_of
from tests.recon.steps.month.test_book_formats import books, expected, written

BOTH = books("csv")
SUMS = sums_of([expected(line, kind="csv") for line in BOTH])
PROGRAM_SECONDS_MAX = 60


def answer(*command: str) -> list[list[str]]:
    """What a program prints as CSV; it ends with 0, or the test is red with what it said."""
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        timeout=PROGRAM_SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return list(csv.reader(done.stdout.splitlines(), strict=True))


def test_hledger_books_each_journal_and_comes_to_the_same_sums(tmp_path: Path) -> None:
    """It takes the file as it is, finds every transaction balanced, and adds up as the lines do."""
    (content,) = written(BOTH, kind="hledger").values()
    path = tmp_path / "books.hledger"
    path.write_bytes(content)
    file = str(path)

    _, *totals = answer("hledger", "-f", file, "balance", "--flat", "--no-total", "-O", "csv")
    head, *postings = answer("hledger", "-f", file, "print", "-O", "csv")

    assert Counter(dict(_hledger_sums(totals))) == SUMS
    rows = [dict(zip(head, cells, strict=True)) for cells in postings]
    assert sorted((row["code"], row["date"], row["account"]) for row in rows) == sorted(
        (line.journal_id, line.day.isoformat(), line.account) for line in BOTH
    )
    assert {row["comment"] + row["posting-comment"] for row in rows} == {""}


def thousandths(text: str) -> int:
    """An amount as a strict reader takes it: digits, one point, no grouping."""
    assert re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text), text
    return int(Decimal(text) * 1000)


def _hledger_sums(totals: list[list[str]]) -> Iterator[tuple[tuple[str, str], int]]:
    for account, balance in totals:
        for amount in balance.split(", "):
            number, currency = amount.split(" ")
            yield (account, currency), thousandths(number)


def test_beancount_books_each_journal_and_comes_to_the_same_sums(tmp_path: Path) -> None:
    """With the accounts open, its check has nothing to say and its sums are those of the lines."""
    (content,) = written(BOTH, kind="beancount").values()
    names = sorted({*re.findall(r"^  (\S+:\S+)  ", content.decode(), re.MULTILINE)})
    opened = "".join(f"2026-01-01 open {name}\n" for name in names) + "\n"
    path = tmp_path / "books.beancount"
    path.write_bytes(opened.encode() + content)
    file = str(path)

    assert answer("bean-check", file) == []
    _, *postings = answer(
        "bean-query", "-f", "csv", file, "SELECT account, currency, str(number), date"
    )

    sums: Counter[tuple[str, str]] = Counter()
    for account, currency, amount in map(_beancount_entry, postings):
        sums[account, currency] += amount
    assert sums == SUMS
    assert sorted(cells[3] for cells in postings) == sorted(line.day.isoformat() for line in BOTH)


def _beancount_entry(cells: list[str]) -> tuple[str, str, int]:
    account, currency, number = (cell.strip() for cell in cells[:3])
    exact = re.fullmatch(r"Decimal\('(.+)'\)", number)
    assert exact, number
    return account.rsplit(":", 1)[1], currency, thousandths(exact[1])
