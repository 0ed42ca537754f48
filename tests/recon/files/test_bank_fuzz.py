"""Statements with bytes changed, cut, doubled and moved: refused in words, or they add up.

What adds up is judged by a second reader that shares nothing with ours: the XML of the standard
library, lines and commas.
"""

import csv
import io
import os
import random
import re
import sys
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import ParseError

from defusedxml.ElementTree import fromstring

from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.kinds.bank_file import bank_file_of
from recon.model.errors import SourceUnreadableError
from tests.recon.matching.bank.truth import truth_of
from tests.recon.matching.bank.writing import as_camt, as_csv, as_mt940

CASES = int(os.environ.get("BANK_FUZZ", "30"))
"""Changed statements; `make test-truths` plays more, BANK_FUZZ=20000 many."""
FIRST = int(os.environ.get("BANK_FUZZ_FROM", "0"))
"""Where a play that was ended goes on."""
RULES = Rules()
DIGITS = b"0123456789"


@cache
def small(seed):
    """A month of a few entries; writing it changes nothing in it."""
    truth = truth_of(seed)
    truth.entries = truth.entries[:6]
    return truth


def _byte(text, at, chance):
    text[at] = chance.randrange(256)


def _lost(text, at, chance):
    del text[at : at + chance.randrange(1, 40)]


def _doubled(text, at, chance):
    text[at:at] = text[at : at + chance.randrange(1, 60)]


def _digit(text, at, chance):
    places = [n for n in range(at, min(at + 400, len(text))) if text[n] in DIGITS]
    for place in places[:1]:
        text[place] = chance.choice(DIGITS)


def _cut(text, at, chance):
    del chance, text[at:]


def _mixed(text, at, chance):
    lines = bytes(text[at:]).split(b"\n")
    chance.shuffle(lines)
    text[at:] = b"\n".join(lines)


def _word(text, at, chance):
    words = (b"DBIT", b"CRDT", b"BOOK", b"PDNG", b"OPBD", b"CLBD", b"RC", b"62F", b",,")
    text[at : at + 4] = chance.choice(words)


BENDS = (_byte, _lost, _doubled, _digit, _cut, _mixed, _word)


def bent(content, *, chance):
    """The document with one to three places changed."""
    text = bytearray(content)
    for _ in range(chance.randrange(1, 4)):
        bend = chance.choice(BENDS)
        bend(text, chance.randrange(len(text)), chance)
        text = text or bytearray(b"x")
    return bytes(text)


def _local(tag):
    return tag.rpartition("}")[2]


def _find(element, *path):
    for name in path:
        below = next((one for one in element if _local(one.tag) == name), None)
        if below is None:
            return ""
        element = below
    return (element.text or "").strip()


def _worth(element):
    amount = Decimal(_find(element, "Amt"))
    return amount if _find(element, "CdtDbtInd") == "CRDT" else -amount


def camt_gaps(content):
    """Opening + booked - closing of every statement, the better of both readings of reversals."""
    gaps = []
    for statement in fromstring(content).iter():
        if _local(statement.tag) != "Stmt":
            continue
        balances = {
            _find(one, "Tp", "CdOrPrtry", "Cd"): _worth(one)
            for one in reversed([*statement])
            if _local(one.tag) == "Bal"
        }
        if "CLBD" not in balances or not {"OPBD", "PRCD"} & {*balances}:
            continue
        opening = balances.get("OPBD", balances.get("PRCD", Decimal(0)))
        sums = [Decimal(0), Decimal(0)]
        for one in statement:
            state = _find(one, "Sts", "Cd") or _find(one, "Sts")
            if _local(one.tag) == "Ntry" and state == "BOOK":
                sums[_find(one, "RvslInd") in {"true", "1"}] += _worth(one)
        ways = [opening + sums[0] + way * sums[1] - balances["CLBD"] for way in (1, -1)]
        gaps.append(min(ways, key=abs))
    return gaps


def _swift(mark, amount):
    value = Decimal(amount.replace(",", "."))
    return value if mark in {"C", "RD"} else -value


def mt940_gaps(content):
    """The same of SWIFT's lines; a reversal counts either way."""
    text = content.decode("utf-8-sig", errors="replace")
    gaps, opening, sums = [], Decimal(0), [Decimal(0), Decimal(0)]
    for line in text.split("\n"):
        if found := re.match(r":60[FM]:([CD])\d{6}[A-Z]{3}([\d,]+)", line):
            opening, sums = _swift(*found.groups()), [Decimal(0), Decimal(0)]
        elif found := re.match(r":61:\d{6}(?:\d{4})?(R?[CD])[A-Z]?([\d,]+)", line):
            sums[found[1].startswith("R")] += _swift(*found.groups())
        elif found := re.match(r":62[FM]:([CD])\d{6}[A-Z]{3}([\d,]+)", line):
            closing = _swift(*found.groups())
            ways = [opening + sums[0] + way * sums[1] - closing for way in (1, -1)]
            gaps.append(min(ways, key=abs))
    return gaps


def csv_gaps(content):
    """The same of rows."""
    sums: dict[tuple[str, ...], Decimal] = {}
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")):
        cells = {str(name).strip(): str(cell or "").strip() for name, cell in row.items()}
        if not cells["opening"]:
            continue
        key = tuple(cells[name] for name in ("iban", "statement_no", "from_date", "to_date"))
        start = Decimal(cells["opening"]) - Decimal(cells["closing"])
        counts = cells["amount"] and cells.get("status", "") != "pending"
        sums[key] = sums.get(key, start) + (Decimal(cells["amount"]) if counts else 0)
    return [*sums.values()]


FORMS = (
    (as_camt, "b.xml", camt_gaps),
    (as_mt940, "b.sta", mt940_gaps),
    (as_csv, "b.csv", csv_gaps),
)


def test_a_changed_statement_is_refused_or_adds_up():
    accepted = refused = 0
    for case in range(FIRST, FIRST + CASES):
        chance = random.Random(f"bank fuzz {case}")
        write, name, gaps_of = FORMS[case % len(FORMS)]
        files = write(small(case % 20), chance=chance)
        whole = chance.choice([*files.values()]).encode()
        content = bent(whole, chance=chance)
        try:
            facts, _ = bank_file_of(FileBytes(Path(name), content, str(case)), rules=RULES)
        except SourceUnreadableError as error:
            refused += str(error).startswith("b.")
            continue
        accepted += 1
        for one in facts.statements:
            if one.opening is not None and one.closing is not None:
                assert one.opening + one.booked == one.closing, case
        try:
            gaps = gaps_of(content)
        except (InvalidOperation, ParseError) as error:
            raise AssertionError((case, error)) from error
        assert [gap for gap in gaps if gap] == [], case
    count = f"{refused} refused, {accepted} accepted"
    sys.stdout.write(f"{CASES} changed statements from {FIRST} on: {count}\n")
    assert accepted + refused == CASES
    assert accepted > CASES // 50
    assert refused > CASES // 2
