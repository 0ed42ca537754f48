"""A sample file as cells: encoding, separators, the line of its header, its last record."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recon.config.file_layouts import STANDARD
from recon.files.formats.csv_text import SEPARATORS
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import FORMATS, raw_of
from recon.files.formats.raw_table import EveryColumn, refuse
from recon.files.formats.xlsx_book import sheet_texts
from recon.files.formats.xlsx_cells import NumberText
from recon.files.proposing.vocabulary import TOTALS, plain_words

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
_QUOTES = ('"', "'")
_ALIKE = ("delimiter", "quote", "preamble")
"""What samples of one layout may not differ in. Who has another encoding is refused by its rows."""
_ENCODINGS = {
    "windows-1252": "cp1252",
    "iso-8859-15": "iso8859_15",
    "windows-1250": "cp1250",
    "iso-8859-1": "latin_1",
}
"""What a layout may name, the preferred one first -> as libraries name it."""


class Row(NamedTuple):
    """One record: where it begins, its cells, which of them were exact numbers."""

    line: int
    cells: Sequence[str]
    numbers: Sequence[bool] = ()


class Sample(NamedTuple):
    """A file as cells, and the keys of a layout that its bytes decide."""

    name: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    keys: dict[str, object]
    trailer: tuple[str, ...] = ()
    """The cells of a last record that is a total."""
    questions: dict[str, str] = {}  # noqa: RUF012 - a tuple's default is never written to
    typed: bool = False
    """Its cells may be dates and numbers, not text."""
    undecided: frozenset[str] = frozenset()
    """Keys that it reads alike whatever they are: another sample decides them."""


class _Reading(NamedTuple):
    """A file's text with one delimiter."""

    delimiter: str
    hits: int
    preamble: int


def sample_of(file: FileBytes, *, known: frozenset[str], encoding: str = "") -> Sample:
    """A file as cells; `known` are the plain words of the names that a header may have.

    `encoding` is what a person decided, or "".

    Raises:
        SourceUnreadableError: it is no table, or has no line that is a header.
    """
    name = file.path.name
    if not file.content or file.content.isspace():
        refuse(name, "is empty: give a sample with rows")
    kind = FORMATS.get(file.path.suffix.lower(), "")
    if not kind:
        sample = _of_text(file, known=known, encoding=encoding)
        return sample._replace(keys={"format": "csv"} | sample.keys)
    if kind == "xlsx":
        return _of_sheet(file, known=known)
    if kind == "csv":
        return _of_text(file, known=known, encoding=encoding)
    if kind == "xml":
        refuse(name, "is XML: name the element of a row in `record`, its parts are the columns")
    raw = raw_of(file, wanted=EveryColumn())
    columns = [raw.columns[column].to_pylist()[:SAMPLE_ROWS_MAX] for column in raw.header]
    lines = raw.lines.tolist()[:SAMPLE_ROWS_MAX]
    rows = [Row(line, cells) for line, *cells in zip(lines, *columns, strict=True)]
    return Sample(name, raw.header, tuple(rows), {}, typed=True)


def _of_sheet(file: FileBytes, *, known: frozenset[str]) -> Sample:
    grid = sheet_texts(file, rows_max=PREAMBLE_MAX + SAMPLE_ROWS_MAX)
    hits = [_hits(cells, known=known) for _, cells in grid[:PREAMBLE_MAX]]
    if not hits or max(hits) < HEADER_NAMES_MIN:
        _refuse_headless(file.path.name)
    at = hits.index(max(hits))
    number, cells = grid[at]
    texts = [text.strip() for text in cells]
    width = max(index for index, text in enumerate(texts) if text) + 1
    rows = tuple(
        Row(
            line,
            [text.strip() for text in row[:width]],
            [isinstance(text, NumberText) for text in row[:width]],
        )
        for line, row in grid[at + 1 :]
    )
    last = tuple(rows[-1].cells) if rows else ("",)
    trailer = last if plain_words(last[0]) in TOTALS else ()
    keys: dict[str, object] = {"preamble": number - 1} if at else {}
    rows = rows[:-1] if trailer else rows
    return Sample(file.path.name, tuple(texts[:width]), rows, keys, trailer, typed=True)


def _of_text(file: FileBytes, *, known: frozenset[str], encoding: str) -> Sample:
    name = file.path.name
    texts = _decoded(file.content, name=name)
    texts = {encoding: texts[encoding]} if encoding in texts else texts
    read = {codec: _best(text, known=known) for codec, text in texts.items()}
    most = max(reading.hits for reading in read.values())
    if most < HEADER_NAMES_MIN:
        _refuse_headless(name)
    fitting = [codec for codec, reading in read.items() if reading.hits == most]
    encoding, questions = _encoding(file.content, fitting=fitting, texts=texts, read=read)
    text, reading = texts[encoding], read[encoding]
    quote = _quote(text)
    keys: dict[str, object] = {"delimiter": reading.delimiter, "encoding": encoding}
    keys |= {"quote": quote} if quote != STANDARD.quote else {}
    keys |= {"preamble": reading.preamble} if reading.preamble else {}
    records = list(islice(_records(text, reading, quote=quote), SAMPLE_ROWS_MAX + 1))
    (_, header, _), *rows = records
    trailer = _trailer(text, delimiter=reading.delimiter) if rows else ()
    if trailer:
        rows = rows[:-1]
    width = len(header)
    good = tuple(row for row in rows if len(row.cells) == width)
    undecided = frozenset({"encoding"} if file.content.isascii() else ())
    undecided |= frozenset(() if any(sign in text for sign in _QUOTES) else {"quote"})
    return Sample(name, tuple(header), good, keys, trailer, questions, undecided=undecided)


def _refuse_headless(name: str) -> None:
    refuse(
        name,
        f"has no line among its first {PREAMBLE_MAX} that names columns known to recon; "
        "write its layout by hand",
    )


def _decoded(content: bytes, *, name: str) -> dict[str, str]:
    """Encoding -> text, of all encodings that it may be in; the same text only once."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return {"utf-16": _in_one(content, "utf-16", name=name)}
    if content[1::2].count(0) > len(content) // 4:
        return {"utf-16": _in_one(content, "utf-16", name=name)}
    try:
        return {"utf-8": content.decode("utf-8-sig")}
    except UnicodeDecodeError:
        pass
    texts: dict[str, str] = {}
    for encoding, codec in _ENCODINGS.items():
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        # Control characters above ASCII are in no export: it is another encoding.
        if not any("\x80" <= c <= "\x9f" for c in text) and text not in texts.values():
            texts[encoding] = text
    if not texts:
        refuse(name, "is in none of the encodings that are read; save it as UTF-8")
    return texts


def _in_one(content: bytes, encoding: str, *, name: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeError:
        refuse(name, f"is not {encoding.upper()} to its end")


def _encoding(
    content: bytes, *, fitting: list[str], texts: dict[str, str], read: dict[str, _Reading]
) -> tuple[str, dict[str, str]]:
    """The encoding, and what is to be asked of it."""
    if len(fitting) == 1:
        return fitting[0], {}
    from charset_normalizer import from_bytes

    best = from_bytes(content, cp_isolation=[_ENCODINGS[name] for name in fitting]).best()
    codec = best.encoding if best else ""
    chosen = next((name for name in fitting if _ENCODINGS[name] == codec), fitting[0])
    headers = {_line(texts[name], read[name].preamble) for name in fitting}
    if len(headers) == 1:
        return chosen, {}
    line = read[chosen].preamble + 1
    names = " or ".join(fitting)
    return chosen, {"encoding": f"the header on line {line} reads differently in {names}"}


def _line(text: str, number: int) -> str:
    return text.split("\n", number + 1)[number]


def _best(text: str, *, known: frozenset[str]) -> _Reading:
    """The delimiter whose header has most known names; of several what a dialect detector says."""
    readings = []
    lines = text.split("\n", PREAMBLE_MAX)[:PREAMBLE_MAX]
    for delimiter in SEPARATORS:
        for number, line in enumerate(lines):
            cells = next(csv.reader([line.rstrip("\r")], delimiter=delimiter), [])
            hits = _hits(cells, known=known) if len(cells) >= COLUMNS_MIN else 0
            readings.append(_Reading(delimiter, hits, number))
    most = max(reading.hits for reading in readings)
    best = [reading for reading in readings if reading.hits == most]
    if len({reading.delimiter for reading in best}) > 1 and most:
        from clevercsv import Detector

        found_dialect = Detector().detect(
            text[:_DETECTED_CHARACTERS], verbose=False, delimiters=list(SEPARATORS)
        )
        detected = found_dialect.delimiter if found_dialect else ""
        best = [reading for reading in best if reading.delimiter == detected] or best
    return best[0]


def _quote(text: str) -> str:
    """The quote of cells: apostrophes only where no double quote stands, and pairs of them do."""
    if '"' in text or "'" not in text:
        return '"'
    from clevercsv import Detector

    dialect = Detector().detect(
        text[:_DETECTED_CHARACTERS], verbose=False, delimiters=list(SEPARATORS)
    )
    return "'" if dialect is not None and dialect.quotechar == "'" else '"'


def _hits(cells: Sequence[str], *, known: frozenset[str]) -> int:
    """How many names of a line are known; 0 of what repeats one or holds a number."""
    names = [plain_words(cell) for cell in cells]
    filled = [name for name in names if name]
    if len(set(filled)) < len(filled) or any(name.replace(" ", "").isdigit() for name in filled):
        return 0
    return sum(name in known or _without_units(name) in known for name in filled)


def _without_units(name: str) -> str:
    """A name without its last word, which is often a currency, a zone or a unit."""
    return name.rpartition(" ")[0]


def _records(text: str, reading: _Reading, *, quote: str) -> Iterator[Row]:
    """The header and all rows behind it, each with the line where it begins."""
    body = text.split("\n", reading.preamble)[-1]
    lines = csv.reader(io.StringIO(body, newline=""), delimiter=reading.delimiter, quotechar=quote)
    begins = reading.preamble + 1
    try:
        for cells in lines:
            if cells:
                yield Row(begins, [cell.strip() for cell in cells])
            begins = reading.preamble + lines.line_num + 1
    except csv.Error:
        return  # the check behind the proposal says where and why


def _trailer(text: str, *, delimiter: str) -> tuple[str, ...]:
    """The cells of the last line where its first one is a word for totals."""
    last = text.rstrip("\r\n").rpartition("\n")[2].rstrip("\r")
    cells = tuple(cell.strip() for cell in last.split(delimiter))
    return cells if plain_words(cells[0]) in TOTALS else ()


def joined_keys(samples: Sequence[Sample]) -> dict[str, object]:
    """The keys that samples of one layout decide together.

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
    return keys
