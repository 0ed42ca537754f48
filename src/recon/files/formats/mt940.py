"""SWIFT MT940 bank statements: every line must belong to a tag, and every tag must be known.

We use our own strict parser because the usual library keeps only the last balances of two
statements, gives a reversed credit (`RC`) the sign of a credit and silently drops lines without a
tag. The sign of an entry is the mark next to its amount, whatever else the entry contains.
"""

import io
import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple, NoReturn

from recon.files.formats.bank_records import (
    ENTRIES_MAX,
    STATEMENTS_MAX,
    TEXT_CHARACTERS_MAX,
    RawBalance,
    RawEntry,
    RawStatement,
    glued,
)
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.privacy.displayed_text import redacted

LINE_CHARACTERS_MAX = 1_000
"""Maximum length of a line; SWIFT allows 65, but banks write longer ones."""
FULL_LINE = 65
"""A :86: line of this length continues in the next line, possibly within a word."""
FULL_FIELD = 27
"""The same for the fields ?20 to ?29 and ?60 to ?63."""
CENTURY_TURNS = 80
"""Two-digit years from here on belong to the 20th century."""
DAYS_MAX = 4_096
"""Number of distinct days cached."""
HEADER_LINES_MAX = 10
"""Lines before a statement that are the bank's own, such as its BIC and the message number."""
RABOBANK_HEADER = ":940:"
_HEADER = re.compile(r"[A-Z0-9 ]+")
"""Only codes: a BIC, the message type, the message number."""
HALF_YEAR = 6
"""Months; an entry date without a year is taken in the year nearest to its value date."""

_TAG = re.compile(r":([0-9]{2}[A-Z]?):")
_BALANCE = re.compile(r"(?P<mark>[CD])(?P<day>\d{6})(?P<currency>[A-Z]{3})(?P<amount>\d+,\d*)")
_ENTRY = re.compile(
    r"(?P<value>\d{6})(?P<booked>\d{4}| {4})?(?P<mark>R?[CD])(?P<funds>[A-Z])?(?P<amount>\d+,\d*)"
    r"(?P<kind>[A-Z][A-Z0-9]{3})(?P<reference>.*)"
)
_FIELD = re.compile(r"\?(\d{2})")
_PARTY = re.compile(r"/(?:NAME|CNTP)/(.*?)(?=/[A-Z]{4}/|$)")
"""The counterparty as Dutch and Belgian banks write it in :86:."""
_WORD = re.compile(r"(?<![A-Z])(EREF|KREF|MREF|SVWZ|ABWA|ABWE|CRED|DEBT|IBAN|BIC)\+")
_OPENS = ("60F", "60M")
_CLOSES = ("62F", "62M")
_ENTRY_TAG, _WORDS_TAG = "61", "86"
_ONE_LINE = frozenset({"20", "21", "25", "28", "28C", "13", "13D", "34F", "64", "65", "90C", "90D"})
_KNOWN = frozenset({_ENTRY_TAG, _WORDS_TAG, *_OPENS, *_CLOSES, *_ONE_LINE})
_OF_TEXT = frozenset(f"{number}" for number in (*range(20, 30), *range(60, 64)))


class Field(NamedTuple):
    """One tag with its lines."""

    tag: str
    lines: Sequence[str]
    line: int


def mt940_statements(file: FileBytes) -> list[RawStatement]:
    """Return every statement, or page of a statement, in a file.

    Raises:
        SourceUnreadableError: a line belongs to no tag, or a tag is malformed.
    """
    name = file.path.name
    statements = [*_statements(_fields(file, name=name), name=name)]
    if not statements:
        refuse(name, "has no statement in it: no line begins with :20:")
    return statements


def _fields(file: FileBytes, *, name: str) -> Iterator[Field]:
    lines: list[str] = []
    header: list[tuple[int, str]] = []
    tag, start = "", 0
    for number, line in _lines(file, name=name):
        opens = line[0]
        known = _TAG.match(line) if opens == ":" else None
        if known or line in {"-", RABOBANK_HEADER} or line.startswith("-}"):
            if tag:
                yield Field(tag, lines, start)
            tag, start = known[1] if known else "", number
            if tag and tag != "20":
                _refuse_unclaimed(header, name=name)
            header = [] if tag else header
            lines = [line[known.end() :]] if known else []
        elif tag:
            lines.append(line)
        else:
            header.append((number, line))
            if len(header) > HEADER_LINES_MAX or not _HEADER.fullmatch(line):
                _refuse_unclaimed([(number, line)], name=name)
    _refuse_unclaimed(header, name=name)
    if tag:
        yield Field(tag, tuple(lines), start)


def _refuse_unclaimed(header: Sequence[tuple[int, str]], *, name: str) -> None:
    """Refuse lines without a tag; they are a bank's header only if a statement follows."""
    for number, line in header:
        _wrong(name, number, f"belongs to no tag: {redacted(line)[:40]!r}")


def _lines(file: FileBytes, *, name: str) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each non-blank line, without the SWIFT envelope."""
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = file.content.decode("latin-1")  # older bank files
    for number, raw in enumerate(io.StringIO(text, newline="\n"), start=1):
        line = raw.rstrip()
        if not line:
            continue
        if line[0] == "\x01" or line[-1] == "\x03":
            line = line.removeprefix("\x01").removesuffix("\x03")
        if len(line) > LINE_CHARACTERS_MAX:
            problem = f"has {len(line)} characters, at most {LINE_CHARACTERS_MAX} are read"
            _wrong(name, number, problem)
        if line.startswith("{"):
            line = line.rpartition("{4:")[2] if "{4:" in line else ""
        if line:
            yield number, line


def _statements(fields: Iterator[Field], *, name: str) -> Iterator[RawStatement]:
    own: list[Field] = []  # fields of the current statement, except entries and their :86: texts
    entries: list[RawEntry] = []
    closed, count, entries_count = False, 0, 0
    for each in fields:
        tag = each.tag
        if tag == "20" and own:
            yield _statement(own, entries, name=name)
            own, entries, closed = [], [], False
            count += 1
        if tag in _ONE_LINE and len(each.lines) > 1:
            _wrong(name, each.line + 1, f"belongs to no tag: :{tag}: has one line")
        if tag != "20" and not own:
            problem = f"has :{tag}: outside of a statement, which begins with :20:"
            _wrong(name, each.line, problem)
        entries_count += tag == _ENTRY_TAG
        if count >= STATEMENTS_MAX:
            _too_many(name, each.line, f"{STATEMENTS_MAX} statements")
        if entries_count > ENTRIES_MAX:
            _too_many(name, each.line, f"{ENTRIES_MAX} entries")
        if tag == _ENTRY_TAG:
            if closed:
                _wrong(name, each.line, "is an entry behind the closing balance")
            entries.append(_entry(each, name=name))
        elif tag == _WORDS_TAG:
            if entries and not closed:
                _take_words(entries[-1], each.lines)
        elif tag not in _KNOWN:
            _wrong(name, each.line, f"has the tag :{tag}:, which no statement has")
        else:
            own.append(each)
            closed = closed or tag in _CLOSES
    if own:
        yield _statement(own, entries, name=name)


def _statement(fields: list[Field], entries: list[RawEntry], *, name: str) -> RawStatement:
    account = _only(fields, "25", name=name)
    number = _only(fields, "28C", "28", name=name)
    opening = _balance(_only(fields, *_OPENS, name=name), name=name)
    closing = _balance(_only(fields, *_CLOSES, name=name), name=name)
    for entry in entries:
        entry.currency = closing.currency
    first, _, page = number.lines[0].strip().partition("/")
    return RawStatement(
        account=account.lines[0].replace(" ", "").upper(),
        number=first.lstrip("0") or "0",
        currency=closing.currency,
        page=int(page) if page.isascii() and page.isdecimal() else 1,
        last_page=not closing.intermediate,
        opening=opening,
        closing=closing,
        line=fields[0].line,
        entries=entries,
    )


def _only(group: list[Field], *tags: str, name: str) -> Field:
    mine = [field for field in group if field.tag in tags]
    if len(mine) != 1:
        wrong = mine[1] if mine else group[0]
        word = "twice" if mine else "not"
        _wrong(name, wrong.line, f"is of a statement that has :{tags[0]}: {word}")
    return mine[0]


def _balance(own: Field, *, name: str) -> RawBalance:
    known = _BALANCE.fullmatch(own.lines[0].strip())
    if known is None or len(own.lines) > 1:
        _wrong(name, own.line, f"is no balance :{own.tag}: such as C260131EUR1234,56")
    day = _day(known["day"])
    _refuse_no_day(day, own=own, name=name)
    return RawBalance(
        amount=known["amount"].replace(",", ".").rstrip("."),
        currency=known["currency"],
        credit=known["mark"] == "C",
        day=day,
        intermediate=own.tag.endswith("M"),
    )


def _entry(own: Field, *, name: str) -> RawEntry:
    known = _ENTRY.fullmatch(own.lines[0].strip())
    if known is None:
        _wrong(name, own.line, "is no entry :61: such as 2601310131C10,00NTRFREFERENCE")
    value, booked, sign, _, amount, _, reference = known.groups()
    value_on, booked_on = _days_of(value, (booked or "").strip())
    for day in (value_on, booked_on):
        _refuse_no_day(day, own=own, name=name)
    ours, _, theirs = reference.partition("//")
    ours, theirs = ours.strip(), theirs.strip()
    return RawEntry(
        line=own.line,
        amount=amount.replace(",", ".").rstrip("."),
        currency="",  # set from the closing balance
        credit=sign in {"C", "RD"},
        booked_on=booked_on,
        value_on=value_on,
        reversal=sign[0] == "R",
        entry_no=theirs,
        reference=f"{ours} {theirs}" if ours and theirs else ours or theirs,
        text="\n".join(map(str.strip, own.lines[1:])) if len(own.lines) > 1 else "",
    )


def _take_words(entry: RawEntry, lines: Sequence[str]) -> None:
    """Add the text of :86:, in fields such as ?20 (Germany and neighbours) or in free lines."""
    whole = lines[0] if len(lines) == 1 else "".join(lines)
    pieces = _FIELD.split(whole) if "?" in whole else [whole]
    if len(pieces) == 1:
        text = glued(lines, full=FULL_LINE)
        entry.counterparty = " ".join(part.strip() for part in _PARTY.findall(text))
    else:
        fields = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        codes = sorted(_OF_TEXT.intersection(fields))
        text = glued([fields[code] for code in codes], full=FULL_FIELD)
        account, side, more = (fields.get(code, "").strip() for code in ("31", "32", "33"))
        entry.counterparty = f"{side}{more} {account}".strip()
        text = (
            f"{text} {fields.get('00', '')}"
            if text and fields.get("00")
            else text or fields.get("00", "")
        )
    if "+" in text:
        words = _WORD.split(text)
        named = dict(zip(words[1::2], words[2::2], strict=True))
        entry.end_to_end_id = named.get("EREF", "").strip()[:LINE_CHARACTERS_MAX]
        text = " ".join(map(str.strip, words))
    else:
        entry.end_to_end_id, text = "", text.strip()
    more = entry.text
    entry.text = (f"{text}\n{more}" if text and more else text or more)[:TEXT_CHARACTERS_MAX]


@lru_cache(maxsize=DAYS_MAX)
def _days_of(value: str, booked: str) -> tuple[str, str]:
    """Return value date and booking date; the latter is written without its year, the nearest."""
    value_on = _last_of_february(_day(value))
    if not booked:
        return value_on, value_on
    year, apart = int(value_on[:4]), int(booked[:2]) - int(value_on[5:7])
    if abs(apart) > HALF_YEAR:
        year += 1 if apart < 0 else -1
    return value_on, f"{year:04}-{booked[:2]}-{booked[2:]}"


def _day(text: str) -> str:
    century = "19" if int(text[:2]) >= CENTURY_TURNS else "20"
    return f"{century}{text[:2]}-{text[2:4]}-{text[4:]}"


def _last_of_february(day: str) -> str:
    """Replace 29 or 30 February, value dates of 30/360 interest, by the month's last day."""
    if day[5:] in {"02-29", "02-30"} and not _is_day(day):
        return day[:8] + ("29" if _is_day(f"{day[:8]}29") else "28")
    return day


def _refuse_no_day(day: str, *, own: Field, name: str) -> None:
    if not _is_day(day):
        _wrong(name, own.line, f"has {day}, which is no date")


@lru_cache(maxsize=DAYS_MAX)
def _is_day(day: str) -> bool:
    """Return whether the date exists; cached because a statement has few days and many entries."""
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
