"""The control totals in the words of finance: what stands in Control totals, What must be equal.

The engine's own names stay in the database and in the machine-readable results.
"""

import re

_SOURCES = {"orders": "order files", "gateway": "gateway", "ledger": "ledger"}
_WORDS = (
    (
        r"(\w+): file = accounts \+ unassigned",
        r"{0}: rows in all files = rows given to an account + rows given to none",
    ),
    (
        r"\w+ (.+): read = accepted \+ rejected \+ skipped",
        r"{0}: rows read = accepted + rejected + skipped",
    ),
    (
        r"(.+) stored: accepted = new \+ repeat \+ superseding",
        r"{0}: rows accepted = new + repeats + newer versions, as stored",
    ),
    (
        r"(\w+) taken: accepted = new \+ repeat \+ superseding",
        r"{0}: rows = compared + repeats + replaced by newer",
    ),
    (
        r"keys(?: asked)? = found \+ not found \+ failed",
        "orders asked = found + not known + no usable answer",
    ),
    (
        r"(\w+): in scope = matched \+ pending \+ broken \+ unverified",
        r"{0}: all = matched + waiting + breaks + not verified",
    ),
    (r"(.+) - (.+) = effects", r"{0} less {1} = explained by the sheets"),
    (
        r"matches with an effect = those whose flag explains it",
        "matched with a difference = those whose flag explains it",
    ),
    (r"(\w+): places = items", r"{0}: every record stands in exactly one place"),
    (
        r"sets beyond refunds <= captured <= authorised = those shown",
        "refunded or captured too much = shown as breaks",
    ),
    (r"rounding beyond the budget", "rounding beyond what the rules allow = nothing"),
    (r"sheet = database, (.+)", r"rows of this workbook = database: {0}"),
)
_PATTERNS = tuple((re.compile(pattern), words) for pattern, words in _WORDS)


def proof_words(name: str) -> str:
    """What a control total says, for people; a name without words of its own stands as it is."""
    for pattern, words in _PATTERNS:
        if found := pattern.fullmatch(name):
            return words.format(*(_SOURCES.get(part, part) for part in found.groups()))
    return name
