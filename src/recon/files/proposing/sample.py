"""Samples as one table: encoding, separators, header are found, a night's readers do the rest.

Rows that are no records (subtotals, headings, balances, item lines under an order) are taken out
before columns are ranked, for one of them leaves a cell blank that every record fills. A term is
believed where that holds of each of its rows; item lines where two of them show it. What else could
be one is asked.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import CODECS, FileLayout
from recon.files.formats.csv_text import SEPARATORS, csv_table
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import FORMATS, raw_of
from recon.files.formats.raw_table import EveryColumn, RawTable, refuse
from recon.files.formats.raw_table import joined as joined_tables
from recon.files.formats.xlsx_book import sheet_texts
from recon.files.proposing.vocabulary import NAMES, names_of_column, plain_words
from recon.files.typing.mapped_columns import is_word
from recon.files.typing.table_schema import TableSchema
from recon.model.errors import SourceUnreadableError
from recon.model.words import SourceKind
from recon.privacy.shown_text import redacted

SAMPLE_BYTES_MAX = 8 * 1024 * 1024
"""One sample; a layout needs no more of a file."""
SAMPLE_ROWS_MAX = 5_000
"""Rows of one sample that are looked at; the check behind the proposal reads all."""
PREAMBLE_MAX = 40
"""Lines before a header."""
COLUMNS_MIN = 3
HEADER_NAMES_MIN = 2
"""Names of a line that must be known before it is taken for a header."""
_SHORTENED = r"\A[0-9](?:[.,][0-9]+)?E\+[0-9]+\z"
_ALIKE = ("delimiter", "quote", "preamble")
"""What samples of one layout may not differ in. Who has another encoding is refused by its rows."""
_ENCODINGS = {
    name: CODECS[name] for name in ("windows-1252", "iso-8859-15", "windows-1250", "iso-8859-1")
}
"""What is tried, the preferred one first -> as libraries name it."""


class Sample(NamedTuple):
    """A file as cells, and the keys of a layout that its bytes decide."""

    raw: RawTable
    keys: dict[str, Any]
    trailer: tuple[str, ...] = ()
    """The cells of a last record that is a total."""
    questions: Mapping[str, str] = {}
    typed: bool = False
    """Its cells may be dates and numbers, not text."""
    undecided: frozenset[str] = frozenset()
    """Keys that it reads alike whatever they are: another sample decides them."""
    first_rows: int = 0
    """Of several samples: the rows of the first, whose trailer it is."""


def sample_of(
    file: FileBytes,
    *,
    known: frozenset[str],
    named: frozenset[str] = frozenset(),
    encoding: str = "",
) -> Sample:
    """A file as cells; `known` are the plain words of the names that a header may have.

    `named` are names that a person gave to the letter, `encoding` is what he decided, or "".

    Raises:
        SourceUnreadableError: it is no table, or has no line that is a header.
    """
    name = file.path.name
    if not file.content or file.content.isspace():
        refuse(name, "is empty: give a sample with rows")
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    trailer: tuple[str, ...] = ()
    undecided = frozenset[str]()
    kind = FORMATS.get(file.path.suffix.lower(), "")
    if kind == "xml":
        refuse(name, "is XML: name the element of a row in `record`, its parts are the columns")
    if kind == "xlsx":
        grid = sheet_texts(file, rows_max=PREAMBLE_MAX)
        hits = [_hits(cells, known=known, named=named) for _, cells in grid]
        if max(hits) < HEADER_NAMES_MIN:
            _refuse_headless(name)
        above = grid[hits.index(max(hits))][0] - 1
        keys = {"preamble": above} if above else {}
    elif kind in {"", "csv"}:
        texts = _decoded(file.content, name=name, encoding=encoding)
        keys, questions = _shape(file, texts, known=known, named=named)
        keys = keys if kind else {"format": "csv"} | keys
        text = texts[keys["encoding"]]
        undecided = frozenset({"encoding"} if file.content.isascii() else ())
        undecided |= frozenset(() if '"' in text or "'" in text else {"quote"})
        last = text.rstrip("\r\n").rpartition("\n")[2].split(keys["delimiter"])
        trailer = tuple(cell.strip() for cell in last)
    ended = {"trailer": total} if (total := total_of(trailer)) else {}
    raw = raw_of(file, wanted=EveryColumn(), layout=FileLayout.model_validate(keys | ended))
    if raw.bad_rows and not len(raw.lines):
        bad = raw.bad_rows[0]
        refuse(name, f"has no row that can be read: that on line {bad.line} {bad.reason}")
    rows = len(raw.lines)
    if kind == "xlsx":
        trailer = tuple(raw.columns[column][-1].as_py() for column in raw.header) if rows else ()
        rows -= bool(total_of(trailer))
    raw = raw.some(np.arange(min(rows, SAMPLE_ROWS_MAX)))
    for column in raw.header:
        short = pc.index(pc.match_substring_regex(raw.columns[column], _SHORTENED), True).as_py()
        if plain_words(column) in known and short >= 0:
            refuse(
                name,
                f"has {raw.columns[column][short]} on line {raw.lines[short]} in {column!r}, which "
                "a spreadsheet shortened: export it from the program itself, or format the column "
                "as text before",
            )
    trailer = trailer if total_of(trailer) else ()
    typed = kind not in {"", "csv"}
    return Sample(raw, keys, trailer, questions, typed, undecided, len(raw.lines))


def total_of(cells: Sequence[str]) -> dict[str, Any]:
    """Word and place of a record that is a total by its first cell with content; else nothing."""
    at, word = next(((at, cell) for at, cell in enumerate(cells, start=1) if cell), (0, ""))
    if plain_words(word) not in NAMES["totals"]:
        return {}
    return {"word": word, "place": at} if at > 1 else {"word": word}


def _refuse_headless(name: str) -> NoReturn:
    refuse(
        name,
        f"has no line among its first {PREAMBLE_MAX} that names columns known to recon; "
        "write its layout by hand",
    )


def _decoded(content: bytes, *, name: str, encoding: str) -> dict[str, str]:
    """Encoding -> text, of all encodings that it may be in; the same text only once.

    Those of other scripts read every byte as some letter: only a person can say which it is.
    """
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if encoding not in CODECS and (wide or content[1::2].count(0) > len(content) // 4):
        encoding = "utf-16"
    if encoding in CODECS:
        try:
            return {encoding: content.decode(CODECS[encoding]).removeprefix("\ufeff")}
        except UnicodeError:
            refuse(name, f"is not {encoding} to its end")
    texts: dict[str, str] = {}
    for tried, codec in {"utf-8": "utf-8-sig", **_ENCODINGS}.items():
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        if tried == "utf-8":
            return {tried: text}
        # Control characters above ASCII are in no export: it is another encoding.
        if not any("\x80" <= c <= "\x9f" for c in text) and text not in texts.values():
            texts[tried] = text
    if not texts:
        refuse(name, "is in none of the encodings that are read; save it as UTF-8")
    return texts


def _shape(
    file: FileBytes,
    texts: Mapping[str, str],
    *,
    known: frozenset[str],
    named: frozenset[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys by which a header has most known names and most rows can be read; what is asked."""
    found: dict[str, list[tuple[str, int]]] = {}
    most = HEADER_NAMES_MIN
    for encoding, text in texts.items():
        lines = [line.rstrip("\r") for line in text.split("\n", PREAMBLE_MAX)[:PREAMBLE_MAX]]
        for delimiter in SEPARATORS:
            for number, line in enumerate(lines):
                cells = next(csv.reader([line], delimiter=delimiter), [])
                hits = _hits(cells, known=known, named=named) if len(cells) >= COLUMNS_MIN else 0
                if hits > most:
                    found, most = {}, hits
                if hits == most:
                    found.setdefault(encoding, []).append((delimiter, number))
    if not found:
        _refuse_headless(file.path.name)
    encoding, *others = found
    if others:
        from charset_normalizer import from_bytes

        best = from_bytes(file.content, cp_isolation=[_ENCODINGS[each] for each in found]).best()
        codec = best.encoding if best else ""
        encoding = next((each for each in found if _ENCODINGS[each] == codec), encoding)
    # Apostrophes may quote cells only where no double quote stands.
    quotes = [{"quote": "'"}, {}] if '"' not in texts[encoding] and "'" in texts[encoding] else [{}]
    ways: list[dict[str, Any]] = [
        {"delimiter": delimiter, "encoding": encoding, **quote}
        | ({"preamble": preamble} if preamble else {})
        for delimiter, preamble in found[encoding]
        for quote in quotes
    ]
    keys = min(ways, key=lambda keys: _rows_lost(file, keys)) if len(ways) > 1 else ways[0]
    preamble = keys.get("preamble", 0)
    if len({texts[each].split("\n", preamble + 1)[preamble] for each in found}) == 1:
        return keys, {}
    ask = f"the header on line {preamble + 1} reads differently in {' or '.join(found)}"
    return keys, {"encoding": ask}


def _rows_lost(file: FileBytes, keys: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether a file cannot be read so at all, and how many of its rows."""
    try:
        raw = csv_table(file, wanted=(), layout=FileLayout.model_validate(keys))
    except SourceUnreadableError:
        return True, 0
    return False, len(raw.bad_rows)


def _hits(cells: Sequence[str], *, known: frozenset[str], named: frozenset[str]) -> int:
    """How many names of a line are known; 0 of what repeats one of them or holds a number.

    The last word of a name is often a currency, a zone or a unit.
    """
    filled = [name for cell in cells if (name := plain_words(cell))]
    hits = [cell.strip() for cell in cells if cell.strip() in named]
    for cell in cells:
        name = plain_words(cell)
        if cell.strip() not in named and {name, name.rpartition(" ")[0]} & known:
            hits.append(name)
    is_row = any(name.replace(" ", "").isdigit() for name in filled)
    return 0 if is_row or len(set(hits)) < len(hits) else len(hits)


def joined(samples: Sequence[Sample]) -> Sample:
    """Samples of one layout as one; its trailer is that of the first.

    Raises:
        SourceUnreadableError: one has another header or other separators than the first.
    """
    first, *others = samples
    keys, undecided = dict(first.keys), first.undecided
    for sample in others:
        for key in undecided - sample.undecided:
            keys.pop(key, None)
            keys |= {key: sample.keys[key]} if key in sample.keys else {}
        undecided &= sample.undecided
        decided = [key for key in _ALIKE if key not in sample.undecided]
        alike = all(keys.get(key) == sample.keys.get(key) for key in decided)
        if sample.raw.header != first.raw.header or not alike:
            refuse(sample.raw.name, "has another header or other separators than " + first.raw.name)
    bad_rows = tuple(bad for sample in samples for bad in sample.raw.bad_rows)
    return first._replace(
        raw=replace(joined_tables([sample.raw for sample in samples]), bad_rows=bad_rows),
        keys=keys,
        questions={key: ask for sample in samples for key, ask in sample.questions.items()},
    )


_TERMS = NAMES["no_records"] | NAMES["totals"]
_BETWEEN_WORDS = " + "
"""Between the words of an answer."""
NONE = "none"
"""The answer that rows are records after all."""
_PROVEN_BY_LINES = 2
_RECORDS_MIN = 2
_CELLS_MIN = 3
"""Columns of a file in which a row of one cell is a heading."""
_TOLD_BY_BLANKS = ("amount", "status", "ordered_at", "currency", "order_no")
"""Our columns of which one that is blank tells an item line, the likeliest first."""
_Cells = Mapping[str, str]
_Term = tuple[str, str]
"""A column, and the word in it that suggests a rule."""


def without_other_rows(
    sample: Sample, *, schema: TableSchema, answers: Mapping[str, str]
) -> Sample:
    """The records of a sample, with the keys `skip` and `lines` and what is asked of them."""
    raw, given = sample.raw, _answered(answers)
    columns = (raw.columns[name].to_pylist() for name in raw.header)
    rows = [dict(zip(raw.header, of, strict=True)) for of in zip(*columns, strict=True)]
    short = [bad for bad in raw.bad_rows if bad.is_short]  # no record has too few cells
    every = [(line, cells, False) for line, cells in zip(raw.lines.tolist(), rows, strict=True)]
    every += [(bad.line, dict(zip(raw.header, bad.cells, strict=False)), True) for bad in short]
    terms = [_term_of(cells, given=given) for _, cells, _ in every]
    heads = [
        term is None and len(raw.header) >= _CELLS_MIN and sum(map(bool, cells.values())) == 1
        for term, (_, cells, _) in zip(terms, every, strict=True)
    ]
    plain = [at for at in range(len(rows)) if not (terms[at] or heads[at])]
    lines, keys, questions = _lines_of([every[at] for at in plain], schema=schema, answers=answers)
    out = {plain[at] for at in lines} | {at for at, head in enumerate(heads) if head}
    records = [rows[at] for at in plain if at not in out]
    full = [name for name in raw.header if all(cells[name] for cells in records)]
    rules: dict[_Term, bool] = {(column, w): True for column, ws in given.items() for w in ws}
    first: dict[_Term, int] = {}
    seen = zip(every, terms, heads, strict=True)
    for (line, cells, is_short), term, head in sorted(seen, key=lambda row: row[0][0]):
        if term:
            is_odd = len(records) >= _RECORDS_MIN and not all(cells.get(name) for name in full)
            rules[term] = rules.get(term, True) and (is_short or is_odd or term[0] in given)
            first.setdefault(term, line)
        elif head:
            _ask_of_heading(questions, cells, line=line, given=given)
    words: dict[str, list[str]] = {}
    for (column, word), proven in rules.items():
        if proven:
            words.setdefault(column, []).append(word)
        elif redacted(word) == word:
            ask = f"line {first[column, word]} has {word!r} and reads like a record: is it none?"
            questions[f"skip.{column}"] = f"{ask} ({word}, or {NONE})"
    if words:
        keys["skip"] = [{"column": name, "words": each} for name, each in words.items()]
    out |= {at for at, term in enumerate(terms) if term and rules[term]}
    kept = np.array([at not in out for at in range(len(rows))], dtype=bool)
    return sample._replace(
        raw=raw.some(kept),
        keys=sample.keys | keys,
        questions={**sample.questions, **questions},
        first_rows=int(kept[: sample.first_rows].sum()),
    )


def _answered(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Column -> the words that tell its rows, as a person decided; none where there are none."""
    given = {}
    for key, text in answers.items():
        if key.startswith("skip."):
            words = [] if text == NONE else text.split(_BETWEEN_WORDS)
            given[key.removeprefix("skip.")] = [word.strip() for word in words if word.strip()]
    return given


def _term_of(cells: _Cells, *, given: Mapping[str, list[str]]) -> _Term | None:
    """The first cell that says that its row is no record, as a rule."""
    for column, words in given.items():
        cell = pa.array([cells.get(column, "")], pa.large_string())
        for word in words:
            if is_word(cell, word=word)[0]:
                return column, word
    for column, cell in cells.items():
        if column not in given and (word := _word_of(cell)):
            return column, word
    return None


def _word_of(cell: str) -> str:
    """The term at the beginning of a cell, with `*` where more stands behind it."""
    parts = cell.split(" ")
    for end in range(len(parts), 0, -1):
        begin = " ".join(parts[:end])
        if plain_words(begin) in _TERMS:
            return begin if end == len(parts) else f"{begin} *"
    return ""


def _ask_of_heading(
    questions: dict[str, str], cells: _Cells, *, line: int, given: Mapping[str, list[str]]
) -> None:
    column, cell = next((column, cell) for column, cell in cells.items() if cell)
    if column not in given:
        begin = cell.split(" ")[0]
        example = f"{begin} *" if begin != cell else cell
        ask = f"line {line} has only {redacted(cell)!r}: which words tell such rows?"
        questions.setdefault(f"skip.{column}", f"{ask} ({redacted(example)}, or {NONE})")


def _lines_of(
    rows: Sequence[tuple[int, _Cells, bool]], *, schema: TableSchema, answers: Mapping[str, str]
) -> tuple[frozenset[int], dict[str, Any], dict[str, str]]:
    """Item lines by their place, the key `lines`, what is asked of it.

    Of order files, where each line stands under the order that it names and says nothing of its
    own: what a record says is blank in it, or as in the first line.
    """
    column = answers.get("lines.column", "")
    cells = [cells for _, cells, _ in rows]
    if schema.kind is not SourceKind.ORDERS or not rows or column == NONE:
        return frozenset(), {}, {}
    ours = [
        answers.get(f"columns.{name}", "") or _named(cells[0], names_of_column(name))
        for name in _TOLD_BY_BLANKS
    ]
    if not (order := ours[-1]):
        return frozenset(), {}, {}
    if column:  # the answers are the key
        return _below(cells, column, first=answers.get("lines.first", ""), order=order), {}, {}
    numbered = _named(cells[0], NAMES["lines"])
    keys = [{"column": numbered, "first": "1"}] if numbered else []
    keys += [{"column": name} for name in ours if name]
    ways = []
    for key in keys:
        found = _below(cells, key["column"], first=key.get("first", ""), order=order)
        above = {at: next(n for n in range(at, -1, -1) if n not in found) for at in found}
        proven = all(
            cells[at][name] in {"", cells[first][name]}
            for at, first in above.items()
            for name in filter(None, ours)
        )
        if found and (proven or all(cells[at][order] for at in found)):
            ways.append((key, found, proven))
    if not ways:
        return frozenset(), {}, {}
    key, found, proven = max(ways, key=lambda way: len(way[1]))
    # What would leave some of these lines as records is no second reading of the sample.
    if proven and len(found) >= _PROVEN_BY_LINES and all(each <= found for _, each, _ in ways):
        return found, {"lines": key}, {}
    which = ", ".join(f"{way['column']!r}" for way, _, _ in ways)
    ask = f"line {rows[min(found)][0]} may be an item of the order above it, told by {which}"
    first = "; with lines.first=1" if "first" in key else ""
    ask += f": by which column? ({key['column']}{first}, or {NONE})"
    return found, {}, {"lines.column": ask}


def _named(cells: _Cells, names: frozenset[str]) -> str:
    """The only column of one of these names."""
    named = [name for name in cells if plain_words(name) in names]
    return named[0] if len(named) == 1 else ""


def _below(rows: Sequence[_Cells], column: str, *, first: str, order: str) -> frozenset[int]:
    """Rows that the key would tell, where each stands under a record of its order; else none."""
    found = set()
    number = ""
    for at, row in enumerate(rows):
        cell = row.get(column, "")
        if not (cell not in {"", first} if first else not cell):
            number = row[order]
        elif not number or row[order] not in {"", number}:
            return frozenset()
        else:
            found.add(at)
    return frozenset(found)
