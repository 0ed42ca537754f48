"""Samples as one table: encoding, separators, header are found, a night's readers do the rest.

Rows that are no records (subtotals, headings, balances, item lines under an order) are taken out
before columns are ranked, for one of them leaves a cell blank that every record fills. A term is
believed where that holds of each of its rows; item lines where two of them show it. What else could
be one is asked.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recon.config.file_layouts import CODECS, FileLayout
from recon.files.formats.csv_text import SEPARATORS
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import FORMATS, raw_of
from recon.files.formats.raw_table import EveryColumn, refuse
from recon.files.formats.xlsx_book import sheet_texts
from recon.files.proposing.vocabulary import NAMES, names_of_column, plain_words
from recon.files.typing.table_schema import TableSchema
from recon.model.words import SourceKind
from recon.privacy.shown_text import scrubbed

SAMPLE_BYTES_MAX = 8 * 1024 * 1024
"""One sample; a layout needs no more of a file."""
SAMPLE_ROWS_MAX = 5_000
"""Rows of one sample that are looked at; the check behind the proposal reads all."""
PREAMBLE_MAX = 40
"""Lines before a header."""
COLUMNS_MIN = 3
HEADER_NAMES_MIN = 2
"""Names of a line that must be known before it is taken for a header."""
_DETECTED_CHARACTERS = 16_384
_SHORTENED = re.compile(r"[0-9](?:[.,][0-9]+)?E\+[0-9]+")
_ALIKE = ("delimiter", "quote", "preamble")
"""What samples of one layout may not differ in. Who has another encoding is refused by its rows."""
_ENCODINGS = {
    name: CODECS[name] for name in ("windows-1252", "iso-8859-15", "windows-1250", "iso-8859-1")
}
"""What is tried, the preferred one first -> as libraries name it."""


class Row(NamedTuple):
    """One record: where it begins, its cells by column, which of them were exact numbers."""

    line: int
    cells: Mapping[str, str]
    numbers: frozenset[str] = frozenset()


class Sample(NamedTuple):
    """A file as cells, and the keys of a layout that its bytes decide."""

    name: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    keys: dict[str, Any]
    trailer: tuple[str, ...] = ()
    """The cells of a last record that is a total."""
    questions: Mapping[str, str] = {}
    typed: bool = False
    """Its cells may be dates and numbers, not text."""
    undecided: frozenset[str] = frozenset()
    """Keys that it reads alike whatever they are: another sample decides them."""
    short: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Line and cells of rows with too few of them."""
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
        keys, questions = _shape(texts, known=known, named=named, name=name)
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
    columns = [raw.columns[column].to_pylist() for column in raw.header]
    cells = list(zip(*columns, strict=True))
    if kind == "xlsx":
        trailer = cells.pop() if cells and total_of(cells[-1]) else ()
    marks = {column: of.to_pylist() for column, of in raw.numbers.items()}
    rows = tuple(
        Row(
            line,
            dict(zip(raw.header, of, strict=True)),
            frozenset(column for column, are in marks.items() if are[at]),
        )
        for at, (line, of) in enumerate(
            zip(raw.lines.tolist()[:SAMPLE_ROWS_MAX], cells[:SAMPLE_ROWS_MAX], strict=False)
        )
    )
    _refuse_shortened(name, rows, known=known)
    trailer = trailer if total_of(trailer) else ()
    typed = kind not in {"", "csv"}
    short = tuple((bad.line, bad.cells) for bad in raw.bad_rows if bad.is_short)
    return Sample(
        name, raw.header, rows, keys, trailer, questions, typed, undecided, short, len(rows)
    )


def _refuse_shortened(name: str, rows: Sequence[Row], *, known: frozenset[str]) -> None:
    for row in rows:
        for column, text in row.cells.items():
            if plain_words(column) in known and _SHORTENED.fullmatch(text):
                refuse(
                    name,
                    f"has {text} on line {row.line} in {column!r}, which a spreadsheet shortened: "
                    "export it from the program itself, or format the column as text before",
                )


def total_of(cells: Sequence[str]) -> dict[str, Any]:
    """Word and place of a record that is a total by its first cell with content; else nothing."""
    at, word = next(((at, cell) for at, cell in enumerate(cells, start=1) if cell), (0, ""))
    if plain_words(word) not in NAMES["totals"]:
        return {}
    return {"word": word, "place": at} if at > 1 else {"word": word}


def _refuse_headless(name: str) -> None:
    refuse(
        name,
        f"has no line among its first {PREAMBLE_MAX} that names columns known to recon; "
        "write its layout by hand",
    )


def _decoded(content: bytes, *, name: str, encoding: str) -> dict[str, str]:
    """Encoding -> text, of all encodings that it may be in; the same text only once.

    Those of other scripts read every byte as some letter: only a person can say which it is.
    """
    if encoding in CODECS:
        try:
            return {encoding: content.decode(CODECS[encoding]).removeprefix("\ufeff")}
        except UnicodeError:
            refuse(name, f"is not {encoding} to its end")
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if wide or content[1::2].count(0) > len(content) // 4:
        try:
            return {"utf-16": content.decode("utf-16")}
        except UnicodeError:
            refuse(name, "is not UTF-16 to its end")
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
    texts: Mapping[str, str], *, known: frozenset[str], named: frozenset[str], name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The encoding, delimiter and line by which a header has most known names; what is asked."""
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
        _refuse_headless(name)
    encoding, *others = found
    if others:
        from charset_normalizer import from_bytes

        codecs = [_ENCODINGS[each] for each in found]
        content = texts[encoding].encode(_ENCODINGS[encoding])
        best = from_bytes(content, cp_isolation=codecs).best()
        codec = best.encoding if best else ""
        encoding = next((each for each in found if _ENCODINGS[each] == codec), encoding)
    text, ways = texts[encoding], found[encoding]
    if len({delimiter for delimiter, _ in ways}) > 1:
        detected = _dialect(text)[0]
        ways = [way for way in ways if way[0] == detected] or ways
    delimiter, preamble = ways[0]
    keys: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    # Apostrophes quote cells only where no double quote stands, and pairs of them do.
    if '"' not in text and "'" in text and _dialect(text)[1] == "'":
        keys["quote"] = "'"
    if preamble:
        keys["preamble"] = preamble
    if len({texts[each].split("\n", preamble + 1)[preamble] for each in found}) == 1:
        return keys, {}
    ask = f"the header on line {preamble + 1} reads differently in {' or '.join(found)}"
    return keys, {"encoding": ask}


def _dialect(text: str) -> tuple[str, str]:
    """Delimiter and quote as the cells of a text tell them, "" where they do not."""
    from clevercsv import Detector

    some = text[:_DETECTED_CHARACTERS]
    dialect = Detector().detect(some, verbose=False, delimiters=list(SEPARATORS))
    return (dialect.delimiter or "", dialect.quotechar or "") if dialect is not None else ("", "")


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
        if sample.header != first.header or not alike:
            refuse(sample.name, f"has another header or other separators than {first.name}")
    return first._replace(
        rows=tuple(row for sample in samples for row in sample.rows),
        short=tuple(row for sample in samples for row in sample.short),
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


class _Term(NamedTuple):
    """A rule that a cell suggests."""

    column: str
    word: str


def without_other_rows(
    sample: Sample, *, schema: TableSchema, answers: Mapping[str, str]
) -> Sample:
    """The records of a sample, with the keys `skip` and `lines` and what is asked of them."""
    given = _answered(answers)
    terms = [_term_of(row.cells, given=given) for row in sample.rows]
    heads = [
        term is None
        and len(sample.header) >= _CELLS_MIN
        and sum(map(bool, row.cells.values())) == 1
        for row, term in zip(sample.rows, terms, strict=True)
    ]
    plain = [
        at
        for at, (term, head) in enumerate(zip(terms, heads, strict=True))
        if not term and not head
    ]
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    lines = _lines_of([sample.rows[at] for at in plain], schema=schema, answers=answers)
    below = {plain[at] for at in lines.rows}
    keys |= lines.keys
    questions |= lines.questions
    records = [sample.rows[at] for at in plain if at not in below]
    full = [name for name in sample.header if all(row.cells[name] for row in records)]
    rules: dict[_Term, bool] = {_Term(column, w): True for column, ws in given.items() for w in ws}
    first: dict[_Term, int] = {}
    for row, term in zip(sample.rows, terms, strict=True):
        if term is not None:
            proven = len(records) >= _RECORDS_MIN and not all(row.cells[name] for name in full)
            rules[term] = rules.get(term, True) and (proven or term.column in given)
            first.setdefault(term, row.line)
    for line, cells in sample.short:  # no record has too few cells
        named = dict(zip(sample.header, cells, strict=False))
        if (term := _term_of(named, given=given)) is not None:
            rules.setdefault(term, True)
            first.setdefault(term, line)
        elif sum(map(bool, cells)) == 1 and len(sample.header) >= _CELLS_MIN:
            _ask_of_heading(questions, named, line=line, given=given)
    for row, head in zip(sample.rows, heads, strict=True):
        if head:
            _ask_of_heading(questions, row.cells, line=row.line, given=given)
    words: dict[str, list[str]] = {}
    for term, proven in rules.items():
        if proven:
            words.setdefault(term.column, []).append(term.word)
        elif scrubbed(term.word) == term.word:
            ask = f"line {first[term]} has {term.word!r} and reads like a record: is it none?"
            questions[f"skip.{term.column}"] = f"{ask} ({term.word}, or {NONE})"
    if words:
        keys["skip"] = [{"column": name, "words": each} for name, each in words.items()]
    out = {at for at, term in enumerate(terms) if term is not None and rules[term]}
    out |= below | {at for at, head in enumerate(heads) if head}
    kept = [at for at in range(len(sample.rows)) if at not in out]
    return sample._replace(
        rows=tuple(sample.rows[at] for at in kept),
        keys=sample.keys | keys,
        questions={**sample.questions, **questions},
        first_rows=sum(at < sample.first_rows for at in kept),
    )


def _answered(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Column -> the words that tell its rows, as a person decided; none where there are none."""
    given = {}
    for key, text in answers.items():
        if key.startswith("skip."):
            words = [] if text == NONE else text.split(_BETWEEN_WORDS)
            given[key.removeprefix("skip.")] = [word.strip() for word in words if word.strip()]
    return given


def _term_of(cells: Mapping[str, str], *, given: Mapping[str, list[str]]) -> _Term | None:
    """The first cell that says that its row is no record, as a rule."""
    for column, words in given.items():
        cell = cells.get(column, "")
        for word in words:
            if cell == word or (word[-1:] == "*" and cell.startswith(word[:-1]) and cell):
                return _Term(column, word)
    for column, cell in cells.items():
        if column not in given and (word := _word_of(cell)):
            return _Term(column, word)
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
    questions: dict[str, str],
    cells: Mapping[str, str],
    *,
    line: int,
    given: Mapping[str, list[str]],
) -> None:
    column, cell = next((column, cell) for column, cell in cells.items() if cell)
    if column not in given:
        begin = cell.split(" ")[0]
        example = f"{begin} *" if begin != cell else cell
        ask = f"line {line} has only {scrubbed(cell)!r}: which words tell such rows?"
        questions.setdefault(f"skip.{column}", f"{ask} ({scrubbed(example)}, or {NONE})")


class _Lines(NamedTuple):
    """Item lines among some rows."""

    rows: frozenset[int] = frozenset()
    keys: Mapping[str, Any] = {}
    questions: Mapping[str, str] = {}


def _lines_of(rows: Sequence[Row], *, schema: TableSchema, answers: Mapping[str, str]) -> _Lines:
    """The key `lines`: of order files, where each line stands under the order that it names."""
    column = answers.get("lines.column", "")
    if schema.kind is not SourceKind.ORDERS or not rows or column == NONE:
        return _Lines()
    ours = {
        name: answers.get(f"columns.{name}", "") or _named(rows[0], names_of_column(name))
        for name in _TOLD_BY_BLANKS
    }
    if not (order := ours["order_no"]):
        return _Lines()
    if column:
        found = _below(rows, column, first=answers.get("lines.first", ""), order=order)
        return _Lines(found or frozenset())  # the answers are the key
    ways = list(_ways(rows, ours=ours, order=order))
    if not ways:
        return _Lines()
    key, found, proven = max(ways, key=lambda way: len(way[1]))
    # What would leave some of these lines as records is no second reading of the sample.
    if proven and len(found) >= _PROVEN_BY_LINES and all(each <= found for _, each, _ in ways):
        return _Lines(found, {"lines": key})
    which = ", ".join(f"{way['column']!r}" for way, _, _ in ways)
    line = rows[min(found)].line
    ask = f"line {line} may be an item of the order above it, told by {which}: by which column?"
    first = "; with lines.first=1" if "first" in key else ""
    return _Lines(found, {}, {"lines.column": f"{ask} ({key['column']}{first}, or {NONE})"})


def _named(row: Row, names: frozenset[str]) -> str:
    """The only column of one of these names."""
    named = [name for name in row.cells if plain_words(name) in names]
    return named[0] if len(named) == 1 else ""


def _ways(
    rows: Sequence[Row], *, ours: Mapping[str, str], order: str
) -> Iterator[tuple[dict[str, str], frozenset[int], bool]]:
    """Keys by which lines can be told, the rows that they tell, and whether these prove it."""
    others = [name for name in ours.values() if name]
    if numbered := _named(rows[0], NAMES["lines"]):
        found = _below(rows, numbered, first="1", order=order)
        if found:
            firsts = [row for at, row in enumerate(rows) if at not in found]
            bare = any(
                all(row.cells[name] for row in firsts)
                and not any(rows[at].cells[name] for at in found)
                for name in others
            )
            amount = ours["amount"]
            again = amount and all(
                rows[at].cells[name] == rows[_first(rows, at, found)].cells[name]
                for at in found
                for name in others
            )
            yield {"column": numbered, "first": "1"}, found, bool(bare or again)
    for name in others:
        found = _below(rows, name, first="", order=order)
        also = [each for each in others if each != name]
        if found and any(not any(rows[at].cells[each] for at in found) for each in also):
            yield {"column": name}, found, True
        elif found and name != order and all(rows[at].cells[order] for at in found):
            yield {"column": name}, found, False


def _first(rows: Sequence[Row], at: int, found: frozenset[int]) -> int:
    while at in found:
        at -= 1
    return at if rows else 0


def _below(rows: Sequence[Row], column: str, *, first: str, order: str) -> frozenset[int] | None:
    """Rows that the key would tell, where each stands under a record of its order; else None."""
    found = set()
    number = ""
    for at, row in enumerate(rows):
        cell = row.cells.get(column, "")
        if not (cell not in {"", first} if first else not cell):
            number = row.cells[order]
        elif not number or row.cells[order] not in {"", number}:
            return None
        else:
            found.add(at)
    return frozenset(found)
