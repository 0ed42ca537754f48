"""Bank statements of SWIFT, MT940: every line belongs to a tag, and every tag is known.

Read strictly and by ourselves: of the known library's readings one keeps the last balances of two
statements and gives a reversed credit (`RC`) the sign of a credit, and lines that no tag claims
fall away without a word. A sign is the mark beside the amount, whatever else stands there.
"""

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, NoReturn

from recon.files.formats.bank_records import (
    ENTRIES_MAX,
    STATEMENTS_MAX,
    TEXT_CHARACTERS_MAX,
    EntryBlock,
    RawBalance,
    RawEntry,
    RawStatement,
    block_of,
)
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.privacy.shown_text import scrubbed

MT940_BYTES_MAX = 256 * 1024 * 1024
"""One file."""
LINE_CHARACTERS_MAX = 1_000
"""One line; SWIFT has 65, banks write longer ones."""
FULL_LINE = 65
"""A line of :86: that is so long goes on in the next one, within a word perhaps."""
FULL_FIELD = 27
"""As much of the fields ?20 to ?29 and ?60 to ?63."""
CENTURY_TURNS = 80
"""Years of two digits from here on are of the last century."""
BLOCK_ROWS = 8_192
"""Entries that are columns together."""
DAYS_MAX = 4_096
"""Different days whose writing is remembered."""
HALF_YEAR = 6
"""Months; an entry's day without a year is the one that is nearest to its value date."""

_TAG = re.compile(r":(?P<tag>[0-9]{2}[A-Z]?):(?P<rest>.*)")
_BALANCE = re.compile(r"(?P<mark>[CD])(?P<day>\d{6})(?P<currency>[A-Z]{3})(?P<amount>\d+,\d*)")
_ENTRY = re.compile(
    r"(?P<value>\d{6})(?P<booked>\d{4})?(?P<mark>R?[CD])(?P<funds>[A-Z])?(?P<amount>\d+,\d*)"
    r"(?P<kind>[A-Z][A-Z0-9]{3})(?P<reference>.*)"
)
_FIELD = re.compile(r"\?(\d{2})")
_WORD = re.compile(r"(?<![A-Z])(EREF|KREF|MREF|SVWZ|ABWA|ABWE|CRED|DEBT|IBAN|BIC)\+")
_OPENS = ("60F", "60M")
_CLOSES = ("62F", "62M")
_ENTRY_TAG, _WORDS_TAG = "61", "86"
_BOUNDS = frozenset({_ENTRY_TAG, *_CLOSES})
"""Tags behind which the words of an entry end."""
_ONE_LINE = frozenset({"20", "21", "25", "28", "28C", "13", "13D", "34F", "64", "65", "90C", "90D"})
_KNOWN = frozenset({_ENTRY_TAG, _WORDS_TAG, *_OPENS, *_CLOSES, *_ONE_LINE})
_OF_TEXT = tuple(f"{number}" for number in (*range(20, 30), *range(60, 64)))


class Field(NamedTuple):
    """One tag with its lines."""

    tag: str
    lines: tuple[str, ...]
    line: int


def mt940_statements(file: FileBytes) -> list[RawStatement]:
    """Every statement, or page of one, of a file.

    Raises:
        SourceUnreadableError: a line belongs to nothing, or a tag is not what it must be.
    """
    name = file.path.name
    if len(file.content) > MT940_BYTES_MAX:
        refuse(name, f"has {len(file.content)} bytes; at most {MT940_BYTES_MAX} are read: split it")
    statements = [*_statements(_fields(_text_of(file.content), name=name), name=name)]
    if not statements:
        refuse(name, "has no statement in it: no line begins with :20:")
    return statements


def _text_of(content: bytes) -> str:
    """UTF-8 where it is, else what banks wrote before: one byte for each character."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _fields(text: str, *, name: str) -> Iterator[Field]:
    lines: list[str] = []
    tag, start = "", 0
    for number, line in _lines(text, name=name):
        known = _TAG.fullmatch(line)
        if known or _ends_message(line):
            if tag:
                yield Field(tag, tuple(lines), start)
            tag, lines, start = ("", [], number) if known is None else (*_opened(known), number)
        elif tag:
            lines.append(line)
        else:
            _wrong(name, number, f"belongs to no tag: {scrubbed(line)[:40]!r}")
    if tag:
        yield Field(tag, tuple(lines), start)


def _opened(known: re.Match[str]) -> tuple[str, list[str]]:
    return known["tag"], [known["rest"]]


def _lines(text: str, *, name: str) -> Iterator[tuple[int, str]]:
    """Number and text of every line that says something, without the envelope of SWIFT."""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip().removeprefix("\x01").removesuffix("\x03")
        if len(line) > LINE_CHARACTERS_MAX:
            problem = f"has {len(line)} characters, at most {LINE_CHARACTERS_MAX} are read"
            _wrong(name, number, problem)
        if line.startswith("{"):
            line = line.rpartition("{4:")[2] if "{4:" in line else ""
        if line:
            yield number, line


def _ends_message(line: str) -> bool:
    return line == "-" or line.startswith("-}")


def _statements(fields: Iterator[Field], *, name: str) -> Iterator[RawStatement]:
    group: list[Field] = []
    count = entries = 0
    for field in fields:
        if field.tag == "20" and group:
            yield _statement(group, name=name)
            group = []
            count += 1
        if field.tag in _ONE_LINE and len(field.lines) > 1:
            _wrong(name, field.line + 1, f"belongs to no tag: :{field.tag}: has one line")
        if not group and field.tag != "20":
            _wrong(
                name,
                field.line,
                f"has :{field.tag}: outside of a statement, which begins with :20:",
            )
        entries += field.tag == _ENTRY_TAG
        if count >= STATEMENTS_MAX:
            _too_many(name, field.line, f"{STATEMENTS_MAX} statements")
        if entries > ENTRIES_MAX:
            _too_many(name, field.line, f"{ENTRIES_MAX} entries")
        group.append(field)
    if group:
        yield _statement(group, name=name)


def _statement(group: list[Field], *, name: str) -> RawStatement:
    account = _only(group, "25", name=name)
    number = _only(group, "28C", "28", name=name)
    opening = _balance(_only(group, *_OPENS, name=name), name=name)
    closing = _balance(_only(group, *_CLOSES, name=name), name=name)
    first, _, page = number.lines[0].strip().partition("/")
    return RawStatement(
        account=account.lines[0].replace(" ", "").upper(),
        number=first.lstrip("0") or "0",
        currency=closing.currency,
        page=int(page) if page.isascii() and page.isdecimal() else 1,
        last_page=not closing.intermediate,
        opening=opening,
        closing=closing,
        line=group[0].line,
        entries=_in_blocks(_entries(group, currency=closing.currency, name=name)),
    )


def _in_blocks(entries: Iterator[RawEntry]) -> list[RawEntry | EntryBlock]:
    """Many entries as columns, which take a fifth of the memory; the last ones as they are."""
    held: list[RawEntry | EntryBlock] = []
    while several := [*islice(entries, BLOCK_ROWS)]:
        held += [block_of(several)] if len(several) == BLOCK_ROWS else several
    return held


def _only(group: list[Field], *tags: str, name: str) -> Field:
    mine = [field for field in group if field.tag in tags]
    if len(mine) != 1:
        wrong = mine[1] if mine else group[0]
        word = "twice" if mine else "not"
        _wrong(name, wrong.line, f"is of a statement that has :{tags[0]}: {word}")
    return mine[0]


def _balance(field: Field, *, name: str) -> RawBalance:
    known = _BALANCE.fullmatch(field.lines[0].strip())
    if known is None or len(field.lines) > 1:
        _wrong(name, field.line, f"is no balance :{field.tag}: such as C260131EUR1234,56")
    return RawBalance(
        amount=known["amount"].replace(",", ".").rstrip("."),
        currency=known["currency"],
        credit=known["mark"] == "C",
        day=_day(known["day"], field=field, name=name),
        intermediate=field.tag.endswith("M"),
    )


def _entries(group: list[Field], *, currency: str, name: str) -> Iterator[RawEntry]:
    """The entries of a statement; each of its fields is given up behind it."""
    entry: RawEntry | None = None
    closed = False
    group.reverse()
    while group:
        field = group.pop()
        if field.tag in _BOUNDS:
            closed = closed or field.tag in _CLOSES
            yield from filter(None, [entry])
            entry = None
        if field.tag == _ENTRY_TAG:
            if closed:
                _wrong(name, field.line, "is an entry behind the closing balance")
            entry = _entry(field, currency=currency, name=name)
        elif field.tag == _WORDS_TAG and entry:
            _take_words(entry, field.lines)
        elif field.tag not in _KNOWN:
            _wrong(name, field.line, f"has the tag :{field.tag}:, which no statement has")


def _entry(field: Field, *, currency: str, name: str) -> RawEntry:
    known = _ENTRY.fullmatch(field.lines[0].strip())
    if known is None:
        _wrong(name, field.line, "is no entry :61: such as 2601310131C10,00NTRFREFERENCE")
    value = _day(known["value"], field=field, name=name)
    own, _, theirs = known["reference"].partition("//")
    sign = known["mark"]
    return RawEntry(
        line=field.line,
        amount=known["amount"].replace(",", ".").rstrip("."),
        currency=currency,
        credit=sign in {"C", "RD"},
        booked_on=_booked(known["booked"], value=value, field=field, name=name),
        value_on=value,
        reversal=sign.startswith("R"),
        entry_no=theirs.strip(),
        reference=" ".join(filter(None, (own.strip(), theirs.strip()))),
        text="\n".join(line.strip() for line in field.lines[1:]),
    )


def _take_words(entry: RawEntry, lines: tuple[str, ...]) -> None:
    """What :86: says: in fields ?20, ?21 (Germany and neighbours), or in lines as they come."""
    pieces = _FIELD.split("".join(lines))
    if len(pieces) == 1:
        text = _glued(lines, full=FULL_LINE)
    else:
        fields = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        text = _glued([fields[code] for code in _OF_TEXT if code in fields], full=FULL_FIELD)
        side = [fields.get(code, "").strip() for code in ("31", "32", "33")]
        entry.counterparty = " ".join(filter(None, (f"{side[1]}{side[2]}", side[0])))
        text = " ".join(filter(None, (text, fields.get("00", ""))))
    words = _WORD.split(text) if "+" in text else [text]
    named = dict(zip(words[1::2], words[2::2], strict=True))
    entry.end_to_end_id = named.get("EREF", "").strip()[:LINE_CHARACTERS_MAX]
    text = " ".join(map(str.strip, words))
    entry.text = "\n".join(filter(None, (text, entry.text)))[:TEXT_CHARACTERS_MAX]


def _glued(pieces: tuple[str, ...] | list[str], *, full: int) -> str:
    """Pieces as one text: behind a full one a word may go on, behind another it ends."""
    text = ""
    for piece in pieces:
        text += piece if len(piece) >= full else f"{piece} "
    return text.strip()


def _booked(month_day: str | None, *, value: str, field: Field, name: str) -> str:
    """The day of booking has no year: it is the one nearest to the value date."""
    if not month_day:
        return value
    year, apart = int(value[:4]), int(month_day[:2]) - int(value[5:7])
    if abs(apart) > HALF_YEAR:
        year += 1 if apart < 0 else -1
    return _checked(f"{year:04}-{month_day[:2]}-{month_day[2:]}", field=field, name=name)


def _day(text: str, *, field: Field, name: str) -> str:
    century = "19" if int(text[:2]) >= CENTURY_TURNS else "20"
    day = f"{century}{text[:2]}-{text[2:4]}-{text[4:]}"
    return _checked(day, field=field, name=name)


def _checked(day: str, *, field: Field, name: str) -> str:
    if not _is_day(day):
        _wrong(name, field.line, f"has {day}, which is no date")
    return day


@lru_cache(maxsize=DAYS_MAX)
def _is_day(day: str) -> bool:
    """Whether a calendar has it; a statement has few days and many entries."""
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def _too_many(name: str, line: int, limit: str) -> NoReturn:
    refuse(
        name,
        f"has more than {limit}, the first too many in line {line}; nothing of it counts: split it "
        "before a line that begins with :20:",
    )


def _wrong(name: str, line: int, problem: str) -> NoReturn:
    refuse(name, f"line {line} {problem}; nothing of it counts: ask the bank for it again")
