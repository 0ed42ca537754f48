"""Load samples as one table: find encoding, separators and header, then use a run's readers.

Rows that are not records (subtotals, headings, balances, item lines of an order) are removed before
columns are ranked, because they leave cells blank that every record fills. A term marks such rows
if that holds for each of its rows; item lines need two rows. Other candidates are asked.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import CODECS, FileLayout
from recon.files.formats.csv_text import SEPARATORS, csv_table
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import FORMATS, raw_of
from recon.files.formats.raw_table import EveryColumn, RawTable, joined, refuse
from recon.files.formats.xlsx_book import sheet_texts
from recon.files.proposing.vocabulary import NAMES, names_of_column, plain_text
from recon.files.typing.mapped_columns import equals
from recon.model.errors import SourceUnreadableError
from recon.privacy.displayed_text import redacted

SAMPLE_BYTES_MAX = 8 * 1024 * 1024
"""Maximum size of a sample; a layout needs no more."""
SAMPLE_ROWS_MAX = 5_000
"""Maximum number of rows of a sample that are used; the check after the proposal reads all."""
PREAMBLE_MAX = 40
"""Maximum number of lines before a header."""
COLUMNS_MIN = 3
HEADER_NAMES_MIN = 2
"""Minimum number of known names in a line that is taken for a header."""
NONE = "none"
"""The answer that these rows are records after all."""
_SHORTENED = r"\A[0-9](?:[.,][0-9]+)?E\+[0-9]+\z"
_ENCODINGS = {
    name: CODECS[name] for name in ("windows-1252", "iso-8859-15", "windows-1250", "iso-8859-1")
}
"""Encodings to try, the preferred one first -> name of the Python codec."""
_TERMS = NAMES["no_records"] | NAMES["totals"]
_BETWEEN_WORDS = " + "
"""Separator of the terms in an answer."""
_LINES_MIN = 2


class Sample(NamedTuple):
    """Files of one layout as cells, and the keys that their bytes decide."""

    raw: RawTable
    keys: dict[str, Any]
    questions: dict[str, str]
    trailer: tuple[str, ...] = ()
    """The cells of the first file's last record, if that is a total."""
    typed: bool = False
    """The cells may be dates and numbers instead of text."""
    first_rows: int = 0
    """Number of rows of the first file, to which the trailer refers."""


def sample_of(
    files: Sequence[FileBytes], *, known: frozenset[str], answers: Mapping[str, str]
) -> Sample:
    """Read the samples as cells; `known` are the normalised names that a header may have.

    Raises:
        SourceUnreadableError: one is not a table, has no header line, or a different one.
    """
    named = frozenset(_named_by(answers))
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    texts: list[str] = []
    name, kind = files[0].path.name, FORMATS.get(files[0].path.suffix.lower(), "")
    for file in files:
        if not file.content or file.content.isspace():
            refuse(file.path.name, "is empty: give a sample with rows")
        if FORMATS.get(file.path.suffix.lower(), "") != kind:
            _refuse_other(file, files[0])
    if kind == "xml":
        refuse(name, "is XML: name the element of a row in `record`, its parts are the columns")
    if kind == "xlsx":
        grid = sheet_texts(files[0], rows_max=PREAMBLE_MAX)
        hits = [_hits(cells, known=known, named=named) for _, cells in grid]
        if max(hits) < HEADER_NAMES_MIN:
            _refuse_headless(name)
        above = grid[hits.index(max(hits))][0] - 1
        keys = {"preamble": above} if above else {}
    elif kind in {"", "csv"}:
        read = _decoded(files, encoding=answers.get("encoding", ""))
        keys, questions = _shape(files, read, known=known, named=named)
        keys = keys if kind else {"format": "csv"} | keys
        texts = read[keys["encoding"]]
    tables: list[RawTable] = []
    endings: list[tuple[str, ...]] = []
    for at, file in enumerate(files):
        last = (
            texts[at].rstrip("\r\n").rpartition("\n")[2].split(keys["delimiter"]) if texts else ()
        )
        raw, ending = _table(file, keys=keys, last=tuple(cell.strip() for cell in last))
        if tables and raw.header != tables[0].header:
            _refuse_other(file, files[0])
        _refuse_shortened(raw, known=known)
        tables.append(raw)
        endings.append(ending)
    first_rows, bad = len(tables[0].lines), tuple(bad for raw in tables for bad in raw.bad_rows)
    whole = replace(joined(tables), bad_rows=bad)
    return Sample(whole, keys, questions, endings[0], kind not in {"", "csv"}, first_rows)


def _named_by(answers: Mapping[str, str]) -> list[str]:
    """Return the columns named in answers: a header in another script has no known names."""
    naming = {"columns", "debit", "clock", "sums"}
    given = (text for key, text in answers.items() if key.partition(".")[0] in naming)
    return [name.strip() for text in given for name in text.split(" + ")]


def _refuse_other(file: FileBytes, first: FileBytes) -> NoReturn:
    refuse(file.path.name, "has another header or other separators than " + first.path.name)


def _refuse_headless(name: str) -> NoReturn:
    refuse(
        name,
        f"has no line among its first {PREAMBLE_MAX} that names columns known to recon; "
        "write its layout by hand",
    )


def _refuse_shortened(raw: RawTable, *, known: frozenset[str]) -> None:
    for column in raw.header:
        short = pc.index(pc.match_substring_regex(raw.columns[column], _SHORTENED), True).as_py()
        if plain_text(column) in known and short >= 0:
            refuse(
                raw.name,
                f"has {raw.columns[column][short]} on line {raw.lines[short]} in {column!r}, which "
                "a spreadsheet shortened: export it from the program itself, or format the column "
                "as text before",
            )


def _table(
    file: FileBytes, *, keys: Mapping[str, Any], last: tuple[str, ...]
) -> tuple[RawTable, tuple[str, ...]]:
    """Return the rows of a file without a last one that is a total, and that one's cells."""
    ended = {"trailer": total} if (total := total_of(last)) else {}
    raw = raw_of(
        file, columns_read=EveryColumn(), layout=FileLayout.model_validate({**keys, **ended})
    )
    if raw.bad_rows and not len(raw.lines):
        bad = raw.bad_rows[0]
        refuse(raw.name, f"has no row that can be read: that on line {bad.line} {bad.reason}")
    rows = len(raw.lines)
    if raw.workbook and rows:
        last = tuple(raw.columns[column][-1].as_py() for column in raw.header)
        rows -= bool(total_of(last))
    return raw.some(np.arange(min(rows, SAMPLE_ROWS_MAX))), last if total_of(last) else ()


def total_of(cells: Sequence[str]) -> dict[str, Any]:
    """Return term and place of a record whose first filled cell marks a total; else {}."""
    at, word = next(((at, cell) for at, cell in enumerate(cells, start=1) if cell), (0, ""))
    if plain_text(word) not in NAMES["totals"]:
        return {}
    return {"word": word, "place": at} if at > 1 else {"word": word}


def _decoded(files: Sequence[FileBytes], *, encoding: str) -> dict[str, list[str]]:
    """Return encoding -> text of each file, for every encoding that fits; equal texts only once.

    Single-byte encodings of other scripts decode any byte: only the user can choose one.
    """
    first = files[0].content
    wide = first.startswith((b"\xff\xfe", b"\xfe\xff"))
    if encoding not in CODECS and (wide or first[1::2].count(0) > len(first) // 4):
        encoding = "utf-16"
    tried = {encoding: CODECS[encoding]} if encoding in CODECS else {"utf-8": "utf-8", **_ENCODINGS}
    found: dict[str, list[str]] = {}
    for name, codec in tried.items():
        try:
            texts = [file.content.decode(codec).removeprefix("\ufeff") for file in files]
        except UnicodeError:
            continue
        # C1 control characters occur in no export: it is another encoding.
        odd = len(tried) > 1 and any("\x80" <= c <= "\x9f" for text in texts for c in text)
        if not odd and texts not in found.values():
            found[name] = texts
        if name == "utf-8":
            break
    if not found and len(tried) == 1:
        refuse(files[0].path.name, f"is not {encoding} to its end")
    if not found:
        refuse(files[0].path.name, "is in none of the encodings that are read; save it as UTF-8")
    return found


def _shape(
    files: Sequence[FileBytes],
    read: Mapping[str, Sequence[str]],
    *,
    known: frozenset[str],
    named: frozenset[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the keys that give most known names and fewest bad rows, and the open questions."""
    found: dict[str, list[tuple[str, int]]] = {}
    most = HEADER_NAMES_MIN
    for encoding, texts in read.items():
        lines = [line.rstrip("\r") for line in texts[0].split("\n", PREAMBLE_MAX)[:PREAMBLE_MAX]]
        for delimiter in SEPARATORS:
            for number, line in enumerate(lines):
                cells = next(csv.reader([line], delimiter=delimiter), [])
                hits = _hits(cells, known=known, named=named) if len(cells) >= COLUMNS_MIN else 0
                if hits > most:
                    found, most = {}, hits
                if hits == most:
                    found.setdefault(encoding, []).append((delimiter, number))
    if not found:
        _refuse_headless(files[0].path.name)
    encoding, *others = found
    if others:
        from charset_normalizer import from_bytes

        whole = b"".join(file.content for file in files)
        best = from_bytes(whole, cp_isolation=[_ENCODINGS[each] for each in found]).best()
        codec = best.encoding if best else ""
        encoding = next((each for each in found if _ENCODINGS[each] == codec), encoding)
    text = "".join(read[encoding])
    # Apostrophes are tried as quotes only if there are no double quotes.
    quotes = [{"quote": "'"}, {}] if '"' not in text and "'" in text else [{}]
    ways: list[dict[str, Any]] = [
        {"delimiter": delimiter, "encoding": encoding, **quote}
        | ({"preamble": preamble} if preamble else {})
        for delimiter, preamble in found[encoding]
        for quote in quotes
    ]

    def lost(keys: Mapping[str, Any]) -> tuple[bool, int]:
        """Return whether the files cannot be read at all, and otherwise the number of bad rows."""
        layout = FileLayout.model_validate(keys)
        try:
            return False, sum(
                len(csv_table(f, columns_read=(), layout=layout).bad_rows) for f in files
            )
        except SourceUnreadableError:
            return True, 0

    keys = min(ways, key=lost) if len(ways) > 1 else ways[0]
    preamble = keys.get("preamble", 0)
    if len({read[each][0].split("\n", preamble + 1)[preamble] for each in found}) == 1:
        return keys, {}
    ask = f"the header on line {preamble + 1} reads differently in {' or '.join(found)}"
    return keys, {"encoding": ask}


def _hits(cells: Sequence[str], *, known: frozenset[str], named: frozenset[str]) -> int:
    """Count the known names of a line; 0 if one repeats or a cell is a number.

    The last word of a name is often a currency, a time zone or a unit.
    """
    filled = [name for cell in cells if (name := plain_text(cell))]
    hits = [cell.strip() for cell in cells if cell.strip() in named]
    for cell in cells:
        name = plain_text(cell)
        if cell.strip() not in named and {name, name.rpartition(" ")[0]} & known:
            hits.append(name)
    is_row = any(name.replace(" ", "").isdigit() for name in filled)
    return 0 if is_row or len(set(hits)) < len(hits) else len(hits)


def without_other_rows(sample: Sample, *, orders: bool, answers: Mapping[str, str]) -> Sample:
    """Return the records of a sample, with the keys `skip` and `lines` and their questions.

    `orders`: each record is an order, so item lines may follow it.
    """
    raw, keys, questions = sample.raw, dict(sample.keys), dict(sample.questions)
    given = {
        key.removeprefix("skip."): [] if text == NONE else text.split(_BETWEEN_WORDS)
        for key, text in answers.items()
        if key.startswith("skip.")
    }
    columns = (raw.columns[name].to_pylist() for name in raw.header)
    positions = range(len(raw.lines))
    every = [*zip(raw.lines.tolist(), positions, zip(*columns, strict=True), strict=True)]
    every += [(bad.line, -1, bad.cells) for bad in raw.bad_rows if bad.is_short]
    terms: dict[str, dict[str, str]] = {}
    records = []
    for line, place, texts in sorted(every):
        cells = dict(zip_longest(raw.header, texts, fillvalue=""))
        if (term := _term_of(cells, given=given)) is None:
            records += [(place, line, cells)] if place >= 0 else []
        elif term[0] not in given:
            excerpt = f"line {line} has {redacted(cells[term[0]])!r}"
            terms.setdefault(term[0], {}).setdefault(term[1], excerpt)
    for column, words in terms.items():
        ask = f"{next(iter(words.values()))}: which words mark rows that are no records?"
        questions[f"skip.{column}"] = f"{ask} ({redacted(_BETWEEN_WORDS.join(words))}, or {NONE})"
    if rules := [{"column": name, "words": words} for name, words in given.items() if words]:
        keys["skip"] = rules
    records.sort(key=itemgetter(0))  # samples have lines of the same number
    items = _items(records, answers=answers, keys=keys, questions=questions) if orders else set()
    is_record = np.isin(positions, [at for at, _, _ in records if at not in items])
    first_rows = int(is_record[: sample.first_rows].sum())
    return Sample(raw.some(is_record), keys, questions, sample.trailer, sample.typed, first_rows)


def _term_of(cells: Mapping[str, str], *, given: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Return column and term that mark a row as no record, or None; `*` if more text follows."""
    for column, words in given.items():
        cell = pa.array([cells.get(column, "")], pa.large_string())
        if word := next((word for word in words if equals(cell, word=word)[0]), ""):
            return column, word
    is_heading = len(cells) >= COLUMNS_MIN and sum(map(bool, cells.values())) == 1
    for column, text in cells.items():
        parts = text.split(" ") if text and column not in given else ()
        for end in range(len(parts), 0, -1):
            begin = " ".join(parts[:end])
            if plain_text(begin) in _TERMS or (is_heading and end == 1):
                return column, begin if end == len(parts) else f"{begin} *"
    return None


def _items(
    records: Sequence[tuple[int, int, Mapping[str, str]]],
    *,
    answers: Mapping[str, str],
    keys: dict[str, Any],
    questions: dict[str, str],
) -> set[int]:
    """Return the places of rows that are items of the order they name, and set the key `lines`.

    A column that is blank in exactly these rows identifies them; otherwise it is asked.
    """
    column, first = answers.get("lines.column", ""), answers.get("lines.first", "")
    if column == NONE or not records:
        return set()
    if column:  # the answers are the key
        keys["lines"] = {"column": column, "first": first}
        of_rows = ((at, cells[column]) for at, _, cells in records)
        return {at for at, cell in of_rows if (cell not in {"", first} if first else not cell)}
    names = [name for name in records[0][2] if plain_text(name) in names_of_column("order_no")]
    order = answers.get("columns.order_no", names[0] if len(names) == 1 else "")
    items, number = dict[int, int](), ""
    for at, line, cells in records if order in records[0][2] else ():
        if number and cells[order] in {"", number}:
            items[at] = line
        number = cells[order] or number
    blank = [
        name
        for name in records[0][2]
        if all(bool(cells[name]) is (at not in items) for at, _, cells in records)
    ]
    if blank and len(items) >= _LINES_MIN:
        amounts = names_of_column("amount")
        keys["lines"] = {"column": min(blank, key=lambda name: plain_text(name) not in amounts)}
    elif items:
        ask = f"line {min(items.values())} names the order above it: which column names its items"
        questions["lines.column"] = (
            f"{ask} (blank in them; or their number, with lines.first=1)? Or {NONE}"
        )
    return {*items}
