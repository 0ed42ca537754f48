"""Bent order files: nothing escapes uncaught, and nothing is accepted that a strict reader is not.

Each is read in the reading process, as a night reads it. Campaign `fuzz-files` reads
FILE_FUZZ_CASES of them and of those of `test_kind_fuzz`, from number FILE_FUZZ_FROM on; each case
is made from its own number alone.
"""

import json
import os
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from recon.config.rules import Rules
from recon.model.errors import ReaderBrokenError, SourceUnreadableError
from tests.recon.files.file_campaign import REFUSED, Bent, figures_of, played
from tests.recon.files.strict_reader import NEEDED, Meaning, NotAFile, is_like_a_card, read
from tests.recon.files.whole_read import read_order_file_apart

CASES = int(os.environ.get("FILE_FUZZ_CASES", "240")) // 2
"""The other half are the files of every kind and format."""
FROM = int(os.environ.get("FILE_FUZZ_FROM", "0"))
"""The number of the first case."""
SHARES = 4
RULES = Rules()
RIGHT = ("100042", "100042001", "A-{n}", "EUR", "10.{n:02}", "paid", "2026-01-05T10:00:{n:02}Z")
ODD = (
    *(
        "",
        " ",
        "x",
        "NaN",
        "inf",
        "1e3",
        "1_000.00",
        "\uff11\uff10.00",
        "-1.00",
        "+1.00",
        "10,00",
        "1.5",
    ),
    *("10.001", "007.00", "9" * 16, "0", "12.", ".5", "0x1F", "TRUE", "null", '"', '""', 'a"b'),
    *("a\nb", "a\r\nb", "JPY", "KWD", "EUX", "eur", "XAU", "A\u200b", "\u0410-1", "é", "\ufeff"),
    *("2026-02-30", "2026-01-05", "2026-01-05 10:00", "2026-01-05T24:00:00Z", "20260105"),
    *("2026-01-05T10:00:60Z", "0001-01-01T00:00:00Z", "2026-01-05T10:00:00+25:00", "9999-12-31"),
    *("2026-01-05T10:00:00.1234567Z", "2026-01-05T10:00:00,5Z", "\u00a010.00", "\x1c10.00", "\x85"),
    *("paid ", "PAID", "bezahlt", "refunded", "a,b", "a;b", "a\tb", "=1+1", "\x00", "\x0b", "﹒"),
    *("A" * 50, "A" * 51, "#1", "a/b:c", "{}", "[]", "&amp;", "<b>", "]]>", "A-1\u2028"),
)
NUMBERS = ("10.5", "10", "1e2", "-1", "1E400", "0.10", "12345678901234567", "10.00", "-0", "1.0e0")
BYTES = b"\x00\n\r\",;'\xff\xc3\xef\xbb\xbf {}[]:<>/&=-.0129eEAaZ\x1a\x80"


def case(number: int) -> tuple[str, bytes]:
    """The file of a case: its name, its bytes."""
    chance = random.Random(number)
    rows = [_row(chance, n) for n in range(chance.choice((1, 1, 2, 3, 6)))]
    kind = chance.choice(("csv", "csv", "csv", "jsonl", "xml"))
    text = {"csv": as_csv, "jsonl": as_jsonl, "xml": as_xml}[kind](chance, rows)
    content = text.encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((0, 0, 0, 1, 1, 3))):
        content = bent(chance, content)
    return f"orders.{kind}", content


def _row(chance: random.Random, number: int) -> list[str]:
    cells = [cell.format(n=number) for cell in RIGHT]
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        cells[chance.randrange(len(cells))] = chance.choice(ODD)
    return cells


def as_csv(chance: random.Random, rows: list[list[str]], *, names: Sequence[str] = NEEDED) -> str:
    """The rows as CSV, now and then with a cell too many or too few."""
    end = chance.choice(("\n", "\n", "\r\n"))
    quoted = chance.random()
    lines = [",".join(_header(chance, names))]
    for cells in rows:
        if chance.random() < 0.05:
            cells.append("extra") if chance.random() < 0.5 else cells.pop()
        lines.append(",".join(_quoted(chance, cell, share=quoted) for cell in cells))
        if chance.random() < 0.05:
            lines.append("")
    return (
        chance.choice(("", "", "\ufeff")) + end.join(lines) + (end if chance.random() < 0.9 else "")
    )


def _header(chance: random.Random, names: Sequence[str]) -> list[str]:
    header = list(names)
    if chance.random() < 0.03:
        header[chance.randrange(len(header))] = chance.choice(("", "status", "Amount", " amount "))
    return header


def _quoted(chance: random.Random, cell: str, *, share: float) -> str:
    if chance.random() < 0.03:
        return cell
    needs = any(mark in cell for mark in ',"\r\n')
    return (
        f'"{cell.replace(chr(34), chr(34) * 2)}"' if needs or chance.random() < share / 4 else cell
    )


def as_jsonl(chance: random.Random, rows: list[list[str]], *, names: Sequence[str] = NEEDED) -> str:
    """The rows as JSON lines, now and then with a value that is no text."""
    lines = []
    for cells in rows:
        pairs = [
            f"{json.dumps(name)}:{json.dumps(cell)}"
            for name, cell in zip(names, cells, strict=True)
        ]
        if chance.random() < 0.3:
            place = chance.randrange(len(pairs))
            value = chance.choice((*NUMBERS, "null", "true", "NaN", "[1]", '{"a":1}', '"\\ud800"'))
            pairs[place] = f"{json.dumps(names[place])}:{value}"
        if chance.random() < 0.05:
            pairs.append(chance.choice(pairs))
        lines.append("{" + ",".join(pairs) + "}")
    return "\n".join(lines) + "\n" * chance.choice((0, 1, 2))


def as_xml(chance: random.Random, rows: list[list[str]], *, names: Sequence[str] = NEEDED) -> str:
    """The rows as XML, now and then with what no record should hold."""
    head = chance.choice(("", '<?xml version="1.0" encoding="utf-8"?>\n', "<!-- c -->"))
    doctype = '<!DOCTYPE o [<!ENTITY e "10.00">]>' if chance.random() < 0.03 else ""
    records = []
    for cells in rows:
        leaves = [
            f"<{name}>{_cell(chance, cell)}</{name}>"
            for name, cell in zip(names, cells, strict=True)
        ]
        if chance.random() < 0.1:
            leaves.insert(
                chance.randrange(len(leaves)), chance.choice((leaves[0], "text", "<?p?>", "<x/>"))
            )
        records.append(f"<order>{''.join(leaves)}</order>")
    return f"{head}{doctype}<orders>{'  '.join(records)}</orders>"


def _cell(chance: random.Random, cell: str) -> str:
    if chance.random() < 0.03:
        return chance.choice((cell, "&e;", f"<![CDATA[{cell}]]>", f"{escape(cell)}<!-- c -->"))
    return escape(cell)


def bent(chance: random.Random, content: bytes) -> bytes:
    """The bytes cut, or with one gone, added or changed."""
    place = chance.randrange(len(content) + 1)
    match chance.randrange(4):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + content[place + chance.choice((1, 1, 5)) :]
        case 2:
            return content[:place] + bytes([chance.choice(BYTES)]) + content[place:]
    return content[:place] + bytes([chance.choice(BYTES)]) + content[place + 1 :]


def ours(path: Path) -> list[Meaning] | None:
    """What a night makes of a file; nothing when it refuses it whole.

    Raises:
        ReaderBrokenError: what no file of these may do.
    """
    try:
        found = read_order_file_apart(path, rules=RULES)
    except ReaderBrokenError:
        raise
    except SourceUnreadableError:
        return None
    counts = found.source_file
    assert counts.rows_read == counts.rows_accepted + counts.rows_rejected
    assert counts.rows_rejected == len(found.rejects)
    names = ("line", "order_no", "currency", "amount", "status", "ordered_at")
    if found.orders.empty:
        return []
    columns = [found.orders[column].tolist() for column in names]
    return [
        Meaning(
            0 if path.name.endswith(".xml") else line,
            key,
            currency,
            amount,
            status,
            at.to_pydatetime(),
        )
        for line, key, currency, amount, status, at in zip(*columns, strict=True)
    ]


def made(number: int, folder: Path) -> Bent:
    """A case, written."""
    name, content = case(number)
    path = folder / name
    path.write_bytes(content)
    return Bent(number, partial(ours, path), partial(judged, name, content))


def judged(name: str, content: bytes, found: list[Meaning] | None) -> str:
    """What is wrong with what was read of a case, or ""."""
    try:
        right: list[Meaning] | None = read(name, content)
    except NotAFile:
        right = None
    if found is None:
        # A file that is refused though a stricter reader reads it: told, and nothing is taken.
        return REFUSED if right else ""
    wrong = [row for row in found if row not in (right or ()) and not is_like_a_card(row)]
    missed = [row for row in right or () if row not in found and not is_like_a_card(row)]
    if wrong or len(found) > len(right or ()):
        return f"accepted {wrong or found} of {content!r}"
    return f"refused {missed} of {content!r}" if missed else ""


@pytest.mark.parametrize("share", range(SHARES))
def test_what_is_accepted_is_what_a_strict_reader_reads(share: int, tmp_path: Path) -> None:
    """The same rows with the same meaning, and no other, within the bounds of a small file."""
    result = played(range(FROM + share, FROM + CASES, SHARES), made=made, folder=tmp_path)
    print(f"\norder files from {FROM}, share {share} of {SHARES}: {figures_of(result)}")  # noqa: T201
    assert result.problems == [], "\n".join(result.problems[:20])
    assert result.refused <= result.files // 20


def test_the_cases_reach_both_ends(tmp_path: Path) -> None:
    """Enough files have accepted rows, and enough have none, for the comparison to mean much."""
    found = []
    for number in range(60):
        name, content = case(number)
        (tmp_path / name).write_bytes(content)
        found.append(ours(tmp_path / name))
    assert sum(bool(rows) for rows in found) > 12
    assert sum(rows is None for rows in found) > 6
    assert sum(rows == [] for rows in found) > 3
