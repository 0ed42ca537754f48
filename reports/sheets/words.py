"""What sheets and forms say of reasons, verdicts, states, flags and codes."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from recon.matching.codes import CODES, Code
from recon.model.words import BreakCode, Flag, UnverifiedReason, Verdict
from recon.proof.second_engine import BY_RULE

UNVERIFIED_WORDS: Mapping[str, str] = {
    UnverifiedReason.QUERY_FAILED: "No usable answer came; it is asked again next night.",
    UnverifiedReason.QUERY_RESULT_UNMAPPED: "The gateway's answer code is in no rule; add it.",
    UnverifiedReason.ROW_QUARANTINED: "A row of this order could not be read; see Sources.",
    UnverifiedReason.ENTRY_ID_CONFLICT: "One ledger entry number has two contents; correct it.",
    UnverifiedReason.REFUND_AMOUNT_UNKNOWN: "Partly refunded; the gateway does not say how much.",
    UnverifiedReason.SIGNATURE_INVALID: "The reply's signature is wrong or missing; tell IT.",
    UnverifiedReason.ECHO_MISMATCH: "The reply names another payment than was asked; tell IT.",
    UnverifiedReason.BATCH_QUARANTINED: "A line of this batch could not be read; see Sources.",
    UnverifiedReason.ORDERS_MISSING: "An order file that may tell of it is lacking; get it.",
}

VERDICT_WORDS: Mapping[Verdict, str] = {
    Verdict.NOT_PROVEN: "A control total does not tie. Do not sign; refunds and payouts are held.",
    Verdict.INCOMPLETE: "Sources, answers or moves are missing. What is here is right but not all.",
    Verdict.BREAKS_OPEN: "Everything is accounted for.",
    Verdict.RECONCILED: "Everything is accounted for, and no break is open.",
}

OWED_WORDS: Mapping[str, str] = {"shopper": "shopper", "merchant": "merchant", "none": "nobody"}


def words_of(code: str) -> Code:
    """The words of a break code; an unknown code stands for itself."""
    try:
        return CODES[BreakCode(code)]
    except ValueError:
        meaning = "This code is newer than this report."
        return Code.model_construct(
            name=code, title=code, meaning=meaning, to_do="See docs/REFERENCE.md."
        )


def in_words(sentence: str, *, code: str) -> str:
    """A sentence that names a break by its code, with the words of finance before the code."""
    if not code:
        return sentence
    return sentence.removeprefix("Break ").replace(code, f"{words_of(code).title} ({code})", 1)


WORDS_KEPT_MAX = 1_024
"""Texts of a column whose words are found once."""
FLAG_WORDS: Mapping[Flag, str] = {
    Flag.ROUNDING: "rounding within the tolerance",
    Flag.CUT_OFF_DIFFERENCE: "other side of the cut-off",
    Flag.PORTAL_ACTION: "done in the gateway's portal",
    Flag.REPLY_ONLY: "known from the reply only",
    Flag.ZERO_AMOUNT: "amount is zero",
    Flag.EXPIRING: "authorisation ends soon",
    Flag.DATE_AHEAD: "dated after this night",
    Flag.ENTRY_VANISHED: "a ledger entry is no longer there",
    Flag.INSTRUCTED: "moved on our instruction",
    Flag.CHARGEBACK_BOOKED: "chargeback is booked",
    Flag.WRITTEN_OFF: "written off",
    Flag.NEVER_PAID: "never paid",
    Flag.REFUNDED_BY_VOID: "refunded by cancelling",
    Flag.REFERENCE_CONFLICT: "references differ",
    Flag.NOT_COMPARED: "nothing to compare with",
    Flag.WITH_BANK: "held against the bank",
    Flag.BOOKED_DIFFERS: "booked otherwise",
    Flag.LATE: "late at the bank",
    Flag.BY_AMOUNT: "found by its amount",
    Flag.REPAID: "sent back and paid again",
    Flag.BANK_CHARGES: "less the bank's charges",
    Flag.EXCHANGED: "exchanged",
    Flag.JOINED: "several in one entry",
    Flag.NO_PAYOUT: "not paid out",
    Flag.OVER_RELEASED: "released beyond what was kept",
    Flag.BEFORE_BOOKS: "settled before the books begin",
    Flag.REFUND_FROM_SETTLEMENT: "refund as settled",
}
STATE_WORDS: Mapping[str, str] = {
    "none": "no record",
    "unmapped": "unknown code",
    "unverified": "not verified",
    "partially_refunded": "partly refunded",
}
"""States that do not say it themselves."""


def state_words(state: str) -> str:
    """A state of an order or payment, such as "partly refunded"."""
    return STATE_WORDS.get(state, state.replace("_", " "))


def rule_words(rule: str) -> str:
    """How a match was found."""
    return rule.replace("_", " ")


def rule_of(words: str) -> str:
    """The rule that `rule_words` says."""
    return words.replace(" ", "_")


def flag_words(flags: str) -> str:
    """The flags of a row, in their order: codes of breaks by their titles."""
    return "; ".join(_flag(flag) for flag in flags.split(";") if flag)


def _flag(flag: str) -> str:
    if flag in set(BreakCode):
        return words_of(flag).title.lower()
    return FLAG_WORDS[Flag(flag)] if flag in set(Flag) else flag


def worded(name: str, words: Callable[[str], str]) -> Callable[[Mapping[str, Any]], str]:
    """A column's value in words."""
    known = lru_cache(WORDS_KEPT_MAX)(words)

    def value(row: Mapping[str, Any]) -> str:
        return known(str(row[name] or ""))

    return value


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
