"""Journals taken in by the programs that they are for: hledger and beancount themselves."""

import csv
import re
import shutil
import subprocess
from datetime import date
from decimal import Decimal

import pytest

from tests.recon.steps.month.journal_readers import Entry
from tests.recon.steps.month.test_journal_formats import all_journals, by_journal, expected, written

BOTH = all_journals("csv")
PROGRAM_SECONDS_MAX = 60


def answer(*command):
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


def thousandths(text):
    """An amount as a strict reader takes it: digits, one point, no grouping."""
    assert re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text), text
    return int(Decimal(text) * 1000)


def test_hledger_books_each_journal_as_its_lines_say(tmp_path):
    """It takes the file as it is, and finds every transaction balanced; no text is a comment."""
    (content,) = written(BOTH, kind="hledger").values()
    assert content.startswith(b"decimal-mark .\n")
    path = tmp_path / "books.hledger"
    path.write_bytes(content)

    head, *postings = answer("hledger", "-f", str(path), "print", "-O", "csv")

    rows = [dict(zip(head, cells, strict=True)) for cells in postings]
    entries = [
        Entry(
            *(row["code"], date.fromisoformat(row["date"]), row["account"], row["commodity"]),
            *(thousandths(row["amount"]), row["description"]),
        )
        for row in rows
    ]
    assert by_journal(entries) == by_journal([expected(line, kind="hledger") for line in BOTH])
    assert {row["comment"] + row["posting-comment"] for row in rows} == {""}


def test_beancount_books_each_journal_as_its_lines_say(tmp_path):
    """With the accounts open, its check has nothing to say."""
    (content,) = written(BOTH, kind="beancount").values()
    names = sorted({*re.findall(r"^  (\S+:\S+)  ", content.decode(), re.MULTILINE)})
    opened = "".join(f"2026-01-01 open {name}\n" for name in names) + "\n"
    path = tmp_path / "books.beancount"
    path.write_bytes(opened.encode() + content)

    assert answer("bean-check", str(path)) == []
    asked = "SELECT any_meta('journal'), date, account, currency, str(number), narration"
    _, *postings = answer("bean-query", "-f", "csv", str(path), asked)

    entries = []
    for name, day, account, currency, number, text in (map(str.strip, row) for row in postings):
        exact = re.fullmatch(r"Decimal\('(.+)'\)", number)
        assert exact, number
        own = account.removeprefix("Equity:Unmapped:")
        place = (name, date.fromisoformat(day), own, currency)
        entries.append(Entry(*place, thousandths(exact[1]), text))
    assert by_journal(entries) == by_journal([expected(line, kind="beancount") for line in BOTH])
