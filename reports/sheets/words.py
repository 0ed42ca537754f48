"""What sheets and forms say of reasons, verdicts and codes; those of codes stand in codes.toml."""

from collections.abc import Mapping

from recon.matching.codes import CODES, Code
from recon.model.words import BreakCode, UnverifiedReason, Verdict

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
    Verdict.BREAKS_OPEN: "Everything is accounted for; the open breaks need a person.",
    Verdict.RECONCILED: "Everything is accounted for; no break is open.",
}

OWED_WORDS: Mapping[str, str] = {"shopper": "shopper", "merchant": "merchant", "none": "nobody"}


def words_of(code: str) -> Code:
    """The words of a break code; an unknown code stands for itself."""
    try:
        return CODES[BreakCode(code)]
    except ValueError:
        meaning = "This code is newer than this report."
        return Code.model_construct(
            name=code, title=code, meaning=meaning, to_do="See docs/REPORTS.md."
        )


def in_words(sentence: str, *, code: str) -> str:
    """A sentence that names a break by its code, with the words of finance before the code."""
    if not code:
        return sentence
    return sentence.removeprefix("Break ").replace(code, f"{words_of(code).title} ({code})", 1)
