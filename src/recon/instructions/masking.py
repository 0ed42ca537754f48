"""What a gateway quotes of cards and persons never rests in the journal.

Replies of batch operations have no field for a card or a person, but a gateway may add one, and
free text can quote anything. Card numbers are cut to 6 + 4, IBANs to their country and end, the
digits behind the name of a card's code are starred, and the values of fields that are named for
such things go wholly. Numbers that our own request already had (orders and transactions) are left
alone: masking them would make a good reply unreadable.
"""

import re

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.card_numbers import SEPARATORS, masked_cards
from recon.privacy.foreign_text import NOT_STORED, PRIVATE_NAMES
from recon.privacy.shown_text import masked_codes

_NAMED = re.compile(
    rf'("(?:{"|".join(sorted(PRIVATE_NAMES))})"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*)',
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"(?<!\\)\\u([0-9A-Fa-f]{4})")
_GAP = re.compile(SEPARATORS)
_UTF_8 = "utf-8"
_ONE_BYTE = "latin-1"
"""Of what is not UTF-8: every byte is one character of it, so it comes out as it went in."""
_CUT = "…"


def masked(text: bytes, *, known: bytes) -> bytes:
    """`text` without what is private; card-like numbers that also stand in `known` are kept."""
    try:
        text.decode()
        encoding = _UTF_8
    except UnicodeDecodeError:
        encoding = _ONE_BYTE
    saved = _NAMED.sub(rf'\1"{NOT_STORED}"', text.decode(encoding))
    if encoding == _UTF_8:
        saved = _ESCAPED.sub(_in_clear, saved)
    saved = masked_accounts(saved).replace(_CUT, NOT_STORED)
    saved = masked_cards(saved, keep=known.decode(encoding, errors="replace"))
    return masked_codes(saved).encode(encoding)


def _in_clear(escape: re.Match[str]) -> str:
    """A digit or a gap that JSON wrote by its number; what else is so written stays."""
    character = chr(int(escape[1], 16))
    return character if character.isdecimal() or _GAP.fullmatch(character) else escape[0]
