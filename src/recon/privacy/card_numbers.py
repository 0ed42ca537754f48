"""Detection of card numbers in ids, messages, file and column names, replies and logs.

A card number consists of digits of any script with an issuer's prefix and length and the right
check digit. It may be grouped by dashes, spaces and the separators of ids, and have any other text
before or after it. From a longer run of digits only leading zeros are removed: windows within it
would find a card in every third long id. Only a run longer than any card is searched by windows,
and only for masking.
"""

import re
from collections.abc import Container, Iterator
from enum import Enum

DIGITS_MIN = 13
DIGITS_MAX = 19
DISPLAYED_FIRST = 6
DISPLAYED_LAST = 4
GROUP_DIGITS_MIN = 4
"""Minimum digits of each group but the last, unless all have the same size."""

SEPARATORS_MAX = 3
"""Maximum number of characters between two groups of one number."""

_DASHES = "\\-\u00ad\u058a\u05be\u1400\u1806\u2010-\u2015\u207b\u208b\u2212\u2e17\u2e1a"
_DASHES += "\u2e3a-\u2e3b\u2e40\u301c\u3030\u30a0\ufe31-\ufe32\ufe58\ufe63\uff0d"
_SPACES = "\t \u00a0\u1680\u180e\u2000-\u200f\u202f\u205f\u2060\u3000\ufeff"
_OF_IDS = "._/:#\u00b7\u2022"
SEPARATORS = f"[{_DASHES}{_SPACES}{_OF_IDS}]"
"""All dashes and spaces of Unicode, invisible characters, and separators of ids."""

_GAP = f"{SEPARATORS}{{0,{SEPARATORS_MAX}}}"
_RUN = re.compile(rf"\d(?:{_GAP}\d){{{DIGITS_MIN - 1},}}")
_GROUP = re.compile(r"\d+")
_FROM_16 = "{12,15}"
_ISSUED = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-59]|[689][0-9])[0-9]{11}"  # Diners Club
    rf"|(?:352[89]|35[3-8][0-9])[0-9]{{12}}"  # JCB, issued with 16
    rf"|(?:60[0-9]{{2}}|64[4-9][0-9]|65[0-9]{{2}})[0-9]{_FROM_16}"  # Discover, RuPay, Elo
    rf"|(?:62|81|82)[0-9]{{2}}[0-9]{_FROM_16}"  # UnionPay, RuPay
    rf"|220[0-4][0-9]{_FROM_16}"  # Mir
    rf"|(?:5018|5020|5038|50[689][0-9]|5893|6304|636[23]|6759|676[1-3])[0-9]{_FROM_16}",  # Maestro
    re.ASCII,
)
_ASCII_GAP = rf"[-\t ._/:#]{{0,{SEPARATORS_MAX}}}"
LIKELY = (
    rf"(?:^|[^0-9])0*(?:4|2{_ASCII_GAP}[2-7]|3{_ASCII_GAP}[04-9]|5{_ASCII_GAP}[0-8]"
    rf"|6{_ASCII_GAP}[0-7]|8{_ASCII_GAP}[12])(?:{_ASCII_GAP}[0-9]){{11}}|[^\x00-\x7f]"
)
"""Pre-filter for RE2: texts to be examined more closely. Any non-ASCII character matches, so gaps
list ASCII only. (With all of Unicode's in each gap, compiling it took longer than its use.)"""

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


class Likeness(Enum):
    """How closely a text resembles a card number."""

    NONE = "none"
    BUT_CHECK_DIGIT = "all but the check digit"
    CARD = "a card number"


def has_check_digit(digits: str) -> bool:
    """Return whether the last digit is the Luhn check digit; other characters are ignored."""
    numbers = [int(character) for character in reversed(digits) if character.isdecimal()]
    return sum(_DOUBLED[n] if at % 2 else n for at, n in enumerate(numbers)) % 10 == 0


def likeness(text: str) -> Likeness:
    """Return whether a text contains a card number, or one with a wrong check digit."""
    closest = Likeness.NONE
    for number in _RUN.finditer(text):
        for digits, _ in _candidates(number[0]):
            if has_check_digit(digits):
                return Likeness.CARD
            closest = Likeness.BUT_CHECK_DIGIT
    return closest


def holds_card(text: str) -> bool:
    """Return whether a text contains a card number and has to be refused."""
    return likeness(text) is Likeness.CARD


def masked_cards(text: str, *, keep: Container[str] = ()) -> str:
    """Return the text with the middle of every card number starred; gaps stay in place.

    Args:
        text: Any text.
        keep: Our own ids, which stay unmasked, or a text that contains them.
    """
    if _RUN.search(text) is None:
        return text
    return _RUN.sub(lambda run: _masked_run(run[0], keep=keep), text)


def _masked_run(run: str, *, keep: Container[str]) -> str:
    hidden: set[int] = set()
    for digits, positions in (*_candidates(run), *_inside_long(run)):
        if has_check_digit(digits) and run[positions[0] : positions[-1] + 1] not in keep:
            hidden.update(positions[DISPLAYED_FIRST:-DISPLAYED_LAST])
    return "".join("*" if at in hidden else character for at, character in enumerate(run))


def _candidates(run: str) -> Iterator[tuple[str, list[int]]]:
    """Yield (ASCII digits, positions) of neighbouring groups with an issuer's prefix and length."""
    groups = [group.span() for group in _GROUP.finditer(run)]
    for first, (start, end) in enumerate(groups):
        positions: list[int] = []
        digits, sizes = "", list[int]()
        zeros = end - start - len(_ascii(run[start:end]).lstrip("0"))
        for begin, stop in ((start + zeros, end), *groups[first + 1 :]):
            positions += range(begin, stop)
            digits += _ascii(run[begin:stop])
            sizes.append(stop - begin)
            if len(digits) > DIGITS_MAX:
                break
            if _is_printed_so(sizes) and _ISSUED.fullmatch(digits):
                yield digits, positions.copy()


def _is_printed_so(sizes: list[int]) -> bool:
    """Return whether a card number may be grouped in these sizes; dates and times never are."""
    before = set(sizes[:-1])
    return all(size >= GROUP_DIGITS_MIN for size in before) or (
        len(before) == 1 and sizes[-1] <= sizes[0]
    )


def _inside_long(run: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the windows of ungrouped runs that are longer than any card."""
    for group in _GROUP.finditer(run):
        digits, begin = _ascii(group[0]), group.start()
        for start in range(len(digits) - DIGITS_MIN + 1 if len(digits) > DIGITS_MAX else 0):
            for length in range(DIGITS_MIN, DIGITS_MAX + 1):
                window = digits[start : start + length]
                if len(window) == length and _ISSUED.fullmatch(window):
                    yield window, list(range(begin + start, begin + start + length))


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)
