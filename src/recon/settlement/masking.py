"""What a gateway quotes of cards and persons never rests in the journal.

Replies of batch operations have no field for a card or a person, but a gateway may add one, and
free text can quote anything. Card numbers are cut to 6 + 4, IBANs to their country and end, and the
values of fields that are named for such things go wholly. Numbers that our own request already had
(orders and transactions) are left alone: masking them would make a good reply unreadable.
"""

import re

from recon.gateway_client.bank_accounts import masked_accounts
from recon.gateway_client.private_names import NOT_KEPT, PRIVATE_NAMES
from recon.gateway_client.text import masked_cards

_NAMED = re.compile(
    rf'("(?:{"|".join(sorted(PRIVATE_NAMES))})"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*)',
    re.IGNORECASE,
)
_GROUPED = re.compile(
    r"(?<![0-9])[0-9]{4}([ -])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{1,7}|[0-9]{6}\1[0-9]{4,5})(?![0-9])"
)
"""As cards are printed; ids with a hyphen in them look otherwise."""
_RUN = re.compile(r"(?<![0-9])[0-9]{13,19}(?![0-9])")
_ONE_BYTE = "latin-1"
"""Every byte is one character of it, so a reply that is no text comes out as it went in."""
_CUT = "…"


def masked(text: bytes, *, known: bytes) -> bytes:
    """`text` without what is private; card-like numbers that also stand in `known` are kept."""
    ours = frozenset(_RUN.findall(known.decode(_ONE_BYTE)))
    kept = _NAMED.sub(rf'\1"{NOT_KEPT}"', text.decode(_ONE_BYTE))
    kept = masked_accounts(kept).replace(_CUT, NOT_KEPT)
    kept = _GROUPED.sub(lambda found: masked_cards(found[0]), kept)
    return _RUN.sub(lambda found: _cut(found[0], ours=ours), kept).encode(_ONE_BYTE)


def _cut(digits: str, *, ours: frozenset[str]) -> str:
    return digits if digits in ours else masked_cards(digits)
