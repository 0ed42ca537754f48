"""Card numbers never rest in the journal: digits that pass the Luhn test are cut to 6 + 4.

Replies of batch operations carry no card field, but free text can. Runs of digits that our own
request already had (order and transaction numbers) are left alone: masking them would turn a good
reply into an unreadable one.
"""

import re

from recon.foreign_bytes.card_numbers import has_check_digit

_SHOWN_FIRST = 6
_SHOWN_LAST = 4

_RUN = re.compile(rb"(?<![0-9])[0-9]{13,19}(?![0-9])")


def masked(text: bytes, *, known: bytes) -> bytes:
    """`text` with card-like numbers cut, but for those that also stand in `known`."""
    ours = set(_RUN.findall(known))

    def cut(found: re.Match[bytes]) -> bytes:
        digits = found.group()
        if digits in ours or not has_check_digit(digits.decode()):
            return digits
        hidden = len(digits) - _SHOWN_FIRST - _SHOWN_LAST
        return digits[:_SHOWN_FIRST] + b"*" * hidden + digits[-_SHOWN_LAST:]

    return _RUN.sub(cut, text)
