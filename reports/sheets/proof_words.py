"""The control totals in the words of finance: what stands in Control totals, What must be equal.

The engine's own names stay in the database and in the machine-readable results.
"""

import re
from collections.abc import Mapping

from recon.proof.second_engine import BY_RULE
from reports.sheets.words import rule_words

QUESTIONS: Mapping[str, str] = {
    "T0": "Every row of every file belongs to an account, or is counted as belonging to none",
    "T1": "Every row that was read was accepted, rejected or skipped by a rule",
    "T2": "Every row accepted was kept: as new, as a repeat, or in the place of an older one",
    "T3": "Every order that was asked about has exactly one answer",
    "T4": "Every record is matched, waiting, a break or not verified; none is lost",
    "T5A": "Gateway less orders is what the sheets explain, to the last minor unit",
    "T5B": "Gateway less ledger is what the sheets explain, to the last minor unit",
    "T5C": "Orders less ledger is what the sheets explain, to the last minor unit",
    "T6": "No record stands in two places",
    "T7": "Breaks open before, and new, less those that ended, are the breaks open now",
    "T8": "Every instruction has one result, and each confirmed one was looked for",
    "T9": "What was refunded or captured beyond its bounds is shown as a break",
    "T10": "Rounding and write-offs stay within what the rules and two people allow",
    "T11": "What batches leave after their pay-outs is what is listed as held back",
    "T12": "Debit and credit of the proposed journals are equal",
    "T13": "These sheets hold what the database holds",
    "T14": "SQL over the sealed files finds the same states, sums and totals",
    "T15": "Each statement of a bank: opening and what was booked come to its closing",
    "T16": "The statements of a bank follow each other without a gap",
    "T17": "What was paid out and did not come is in transit, explained or a break",
    "T18": "What the gateway owes and keeps is what is listed",
    "T19": "Fees, reserves, pay-outs and arrivals differ from the books by what is shown",
}
"""Reference of a control total -> what it proves."""
_MEASURES = {"count": "records", "amount": "money"}

_SOURCES = {"orders": "order files", "gateway": "gateway", "ledger": "ledger"}
_WORDS = (
    (
        r"(\w+): file = accounts \+ unassigned",
        r"{0}: rows in all files = rows given to an account + rows given to none",
    ),
    (
        r"ledger in money: file = compared, step by step",
        "money in the ledger file = ledger compared, step by step",
    ),
    (
        r"breaks open on the night before, as stored = carried forward",
        "breaks open on the night before = carried forward",
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
    (
        r"sheet = database, (\w+) in the file with SHA-256 (\w{8})\w*",
        "file that Sources names = that of the night: {0}, SHA-256 {1}…",
    ),
    (r"sheet = database, (.+)", r"rows of this workbook = database: {0}"),
)
_RULE = re.compile(rf"sheet = database, {BY_RULE}(\w+)")
_PATTERNS = tuple((re.compile(pattern), words) for pattern, words in _WORDS)


def proof_words(name: str) -> str:
    """What a control total says, for people; a name without words of its own stands as it is."""
    if rule := _RULE.fullmatch(name):
        return f"rows of this workbook = database: matched, {rule_words(rule[1])}"
    for pattern, words in _PATTERNS:
        if match := pattern.fullmatch(name):
            return words.format(*(_SOURCES.get(part, part) for part in match.groups()))
    return name


def measure_words(measure: str) -> str:
    """What a control total counts in."""
    return _MEASURES.get(measure, measure)
