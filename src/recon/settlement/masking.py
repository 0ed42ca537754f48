"""Card numbers never rest in the journal: digits that pass the Luhn test are cut to 6 + 4.

Replies of batch operations carry no card field, but free text can. Runs of digits that our own
request already had (order and transaction numbers) are left alone: masking them would turn a good
reply into an unreadable one.
"""

import re

CARD_DIGITS_MIN = 13
CARD_DIGITS_MAX = 19
_SHOWN_FIRST = 6
_SHOWN_LAST = 4
_LUHN_MODULUS = 10

_RUN = re.compile(rb"(?<![0-9])[0-9]{13,19}(?![0-9])")


def masked(text: bytes, *, known: bytes) -> bytes:
    """`text` with card-like numbers cut, but for those that also stand in `known`."""
    ours = set(_RUN.findall(known))

    def cut(found: re.Match[bytes]) -> bytes:
        digits = found.group()
        if digits in ours or not passes_luhn(digits.decode()):
            return digits
        hidden = len(digits) - _SHOWN_FIRST - _SHOWN_LAST
        return digits[:_SHOWN_FIRST] + b"*" * hidden + digits[-_SHOWN_LAST:]

    return _RUN.sub(cut, text)


def passes_luhn(digits: str) -> bool:
    """The check-digit test of card numbers."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value  # noqa: PLR2004 - the test's own constants
    return total % _LUHN_MODULUS == 0
