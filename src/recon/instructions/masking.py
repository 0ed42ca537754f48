"""Masking of card and personal data in gateway replies before they are stored in the journal.

Replies of batch operations have no field for such data, but a gateway may add one, and free text
can quote anything. Card numbers are cut to 6 + 4 digits, IBANs to their country and end; digits
after the name of a card's code are starred; values of fields named for such data are removed.
Numbers that our own request contained (orders and transactions) are not masked, since a good reply
would become unreadable.
"""

import re

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.card_numbers import SEPARATORS, masked_cards
from recon.privacy.displayed_text import masked_codes
from recon.privacy.foreign_text import NOT_STORED, PRIVATE_NAMES

_NAMED = re.compile(
    rf'("(?:{"|".join(sorted(PRIVATE_NAMES))})"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*)',
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"(?<!\\)\\u([0-9A-Fa-f]{4})")
_GAP = re.compile(SEPARATORS)
_UTF_8 = "utf-8"
_ONE_BYTE = "latin-1"
"""Encoding for bytes that are not UTF-8: each byte is one character, so none is changed."""
_CUT = "…"


def masked(text: bytes, *, known: bytes) -> bytes:
    """Return `text` with private data masked; card-like numbers that are in `known` remain."""
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
    """Return an escaped digit or separator as a character; other escapes are unchanged."""
    character = chr(int(escape[1], 16))
    return character if character.isdecimal() or _GAP.fullmatch(character) else escape[0]
