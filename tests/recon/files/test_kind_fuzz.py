"""Bent files of every kind in every format, as a night reads them, against independent readers.

Orders with all their columns, ledgers, settlement files and instructions; CSV, JSON lines, XML,
workbooks and Parquet, each in a reading process of its own under its real bounds. Campaign
`fuzz-files` reads FILE_FUZZ_CASES of them from number FILE_FUZZ_FROM on; each case is made from its
own number alone.
"""

import os

import pandas as pd
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.file_layouts import STANDARD
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.reader import (
    instruction_file,
    ledger_file,
    order_file,
    settlement_file,
)
from recon.files.reader_process import MIB, file_reader
from recon.instructions.sealing import Seal
from recon.model.errors import ReaderBrokenError, SourceUnreadableError
from tests.recon.files.kind_cases import FORMATS, case
from tests.recon.files.strict_kinds import KINDS, as_ours, is_like_a_card, meaning_of
from tests.recon.files.strict_reader import NotAFile, rows_of, rows_of_book

RULES = Rules()
CASES = int(os.environ.get("FILE_FUZZ_CASES", "240"))
FROM = int(os.environ.get("FILE_FUZZ_FROM", "0"))
"""The number of the first case."""
SHARES = 4
CASES_JUDGED = 60
PEAK_BYTES_MAX = 512 * MIB
MILLISECONDS_MAX = 20_000
"""Of the processor, as the memory what a file below 10 MB may take."""
REFUSED = "refused"
"""What is said of a file that is refused whole though a stricter reader reads it."""
SEAL = Seal(SecretStr(Fernet.generate_key().decode()))


def expected(kind, name, content, known):
    """Line and meaning of every row that a strict reader takes."""
    needed = KINDS[kind].names[: KINDS[kind].needed]
    if name.endswith(".parquet"):
        if known is None:
            raise NotAFile
        rows = known
    elif name.endswith(".xlsx"):
        rows = rows_of_book(content, needed=needed)
    else:
        may_be_open = KINDS[kind].may_be_open
        rows = rows_of(name, content, needed=needed, may_be_open=may_be_open)
    found = ((line, meaning_of(cells, kind=kind)) for line, cells in rows)
    return [(line, as_ours(row)) for line, row in found if row is not None]


def ours(kind, path):
    """What recon makes of a file, by the night's own way; nothing when it refuses it whole.

    Raises:
        ReaderBrokenError: what no file of these may do.
    """
    try:
        rows, source, rejects = READERS[kind](path)
    except ReaderBrokenError:
        raise
    except SourceUnreadableError:
        return None
    assert source.rows_read == source.rows_accepted + source.rows_rejected
    assert (source.rows_accepted, source.rows_rejected) == (len(rows), len(rejects))
    names = KINDS[kind].names
    return [
        (
            0 if path.name.endswith(".xml") else int(row["line"]),
            {name: _plain(row.get(name, "")) for name in names},
        )
        for row in rows
    ]


def _plain(value):
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return value.timestamp()
    return value if isinstance(value, str) else int(value)


def _orders(path):
    with order_file(path, rules=RULES, layout=STANDARD, keep=True) as read:
        parts = list(read.parts())
    rows = []
    for part in parts:
        actions = part.actions.to_dict("records")
        for row in part.orders.to_dict("records"):
            wanted = bool(actions) and all(
                actions[0][name] == row[name] for name in ("line", "order_no")
            )
            rows.append({"action_amount": None} | row | (actions.pop(0) if wanted else {}))
        assert actions == []
    return rows, read.facts.source_file, read.facts.rejects


def _ledger(path):
    with ledger_file(LedgerSource(path=path), rules=RULES, keep=True) as read:
        rows = [row for frame in read.parts() for row in frame.to_dict("records")]
        return rows, read.facts.source_file, read.facts.rejects


def _settlement(path):
    read = settlement_file(path, rules=RULES, layout=STANDARD, keep=True)
    return read.frame.to_dict("records"), read.facts.source_file, read.facts.rejects


def _instructions(path):
    how = {"seal": SEAL, "review_flags": frozenset({"1"}), "layout": STANDARD}
    read = instruction_file(path, rules=RULES, **how, keep=True)
    rows = [{**row, "kind": row["action"], "reason": row["action_reason"]} for row in read.actions]
    return rows, read.source_file, read.rejects


READERS = {
    "orders": _orders,
    "ledger": _ledger,
    "settlement": _settlement,
    "instructions": _instructions,
}


def judged(number, found):
    """What is wrong with what was read of a case, or ""."""
    kind, name, content, known = case(number)
    try:
        right = expected(kind, name, content, known)
    except NotAFile:
        right = []
    if found is None:
        # A file that is refused though a stricter reader reads it: told, and nothing is taken.
        return REFUSED if right else ""
    if kind == "instructions":
        for _, row in right:
            row["amount"] = row["amount"] or 0
    wrong = [row for row in found if row not in right and not is_like_a_card(row[1])]
    missed = [row for row in right if row not in found and not is_like_a_card(row[1])]
    if wrong or len(found) > len(right):
        return f"{name} accepted {wrong or found} of {content!r}"
    return f"{name} refused {missed} of {content!r}" if missed else ""


@pytest.mark.parametrize("share", range(SHARES))
def test_what_is_accepted_of_any_kind_is_what_a_strict_reader_reads(share, tmp_path):
    numbers = range(FROM + share, FROM + CASES, SHARES)
    problems, refused, peak, longest = [], 0, 0, 0
    for number in numbers:
        kind, name, content, _ = case(number)
        (tmp_path / name).write_bytes(content)
        try:
            wrong = judged(number, ours(kind, tmp_path / name))
        except ReaderBrokenError as error:
            wrong = str(error)
        took = file_reader().ended
        peak, longest = max(peak, took.peak_bytes), max(longest, took.milliseconds)
        refused += wrong == REFUSED
        problems += [f"case {number}: {wrong}"] * (wrong not in {"", REFUSED})
    print(  # noqa: T201 - for whoever reads the log of a campaign
        f"\nfiles of any kind from {FROM}, share {share}: {len(numbers)} files, {refused} refused "
        f"though strictly right, {len(problems)} problems; at most {peak // MIB} MiB, {longest} ms"
    )
    assert problems == [], "\n".join(problems[:20])
    assert refused <= len(numbers) // 10
    assert peak <= PEAK_BYTES_MAX
    assert longest <= MILLISECONDS_MAX


def test_the_cases_of_every_kind_and_format_reach_both_ends(tmp_path):
    accepted, refused = set(), set()
    for number in range(CASES_JUDGED):
        kind, name, content, _ = case(number)
        (tmp_path / name).write_bytes(content)
        rows = ours(kind, tmp_path / name)
        (accepted if rows else refused).update({kind, name.rpartition(".")[2]})
    assert accepted == refused == {*KINDS, *FORMATS}
