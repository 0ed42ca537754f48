"""What sheets and forms say of reasons, verdicts, states, flags and codes."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from recon.matching.codes import CODES, Code
from recon.model.words import BreakCode, Flag, UnverifiedReason, Verdict

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
