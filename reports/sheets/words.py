"""The product's codes in the plain words of finance, once, for the sheets and docs/REPORTS.md.

Every `BreakCode` has a title (what stands on page one), a meaning and what to do about it. Nothing
here computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from recon.model.words import BreakCode, UnverifiedReason, Verdict


@dataclass(frozen=True, slots=True)
class Words:
    """A break code for people."""

    title: str
    """At most 30 characters: it stands in a column of page one."""
    meaning: str
    to_do: str


_C = BreakCode

BREAK_WORDS: Mapping[BreakCode, Words] = {
    _C.WRONG_ACCOUNT: Words(
        "In the wrong account",
        "The order stands in one account and its payment in another account of the merchant.",
        "Correct the account in the order system, or have the payment moved.",
    ),
    _C.DUPLICATE_ORDER_ROW: Words(
        "Order delivered twice",
        "The order files hold the same order twice with different content.",
        "Find out which row is right and deliver it again with a newer updated_at.",
    ),
    _C.DUPLICATE_PAYMENT: Words(
        "Shopper paid twice",
        "One order has two payments that took money.",
        "Refund the payment that is one too many.",
    ),
    _C.DUPLICATE_LEDGER_POSTING: Words(
        "Booked twice",
        "The ledger holds the same movement twice and neither is reversed.",
        "Reverse one of the two ledger entries.",
    ),
    _C.AMBIGUOUS_MATCH: Words(
        "No single partner",
        "More than one record could be the other side, and nothing tells which.",
        "Compare the references by hand and correct the record that names the wrong order.",
    ),
    _C.CURRENCY_MISMATCH: Words(
        "Currency differs",
        "Order, gateway or ledger name different currencies for the same order.",
        "Find out which currency was charged; correct the record that is wrong.",
    ),
    _C.STATUS_UNMAPPED: Words(
        "Unknown gateway status",
        "The gateway sent a status code that no rule explains.",
        "Ask the gateway what the code means and add it to the status map.",
    ),
    _C.OVER_REFUND: Words(
        "Refunded too much",
        "More was refunded than was captured.",
        "Stop further refunds of this order; recover the surplus or book it as a loss.",
    ),
    _C.CHARGEBACK_AFTER_REFUND: Words(
        "Chargeback after refund",
        "The shopper was refunded and then also charged the payment back.",
        "Dispute the chargeback with the evidence of the refund, within the bank's time limit.",
    ),
    _C.CHARGEBACK_NOT_BOOKED: Words(
        "Chargeback not booked",
        "The gateway shows a chargeback that the ledger does not have.",
        "Book the chargeback; decide whether to dispute it.",
    ),
    _C.CHARGEBACK_UNPROVEN: Words(
        "Chargeback without evidence",
        "The ledger has a chargeback that the gateway has never shown.",
        "Ask for the bank's notice; reverse the entry when there is none.",
    ),
    _C.CHARGEBACK_REVERSED_NOT_BOOKED: Words(
        "Won chargeback not booked",
        "A chargeback was won back at the gateway and the ledger still shows the loss.",
        "Book the reversal of the chargeback.",
    ),
    _C.STATUS_CONFLICT: Words(
        "Status differs",
        "Order and gateway say things that cannot both be true, such as cancelled and paid.",
        "Find out what happened to the goods; correct the order, or capture, cancel or refund.",
    ),
    _C.CANCEL_UNCONFIRMED: Words(
        "Cancel in doubt",
        "A cancel was sent and nobody knows yet whether it took effect.",
        "Do not send it again. Ask the gateway; resolve the instruction with its answer.",
    ),
    _C.CANCEL_REJECTED: Words(
        "Cancel refused",
        "The gateway refused to cancel the payment.",
        "Read the gateway's reason on Instructions; refund instead if it was captured.",
    ),
    _C.CANCEL_DUE: Words(
        "Cancel still to do",
        "A cancel is to be done: the payment still stands at the gateway.",
        "Cancel it while it is only authorised; refund it once the gateway shows it paid.",
    ),
    _C.CAPTURE_UNCONFIRMED: Words(
        "Capture in doubt",
        "A capture was sent and nobody knows yet whether it took effect.",
        "Do not send it again. Ask the gateway; resolve the instruction with its answer.",
    ),
    _C.CAPTURE_REJECTED: Words(
        "Capture refused",
        "The gateway refused to capture an authorised payment.",
        "Read the gateway's reason on Instructions; correct it before the authorisation lapses.",
    ),
    _C.AUTHORISATION_EXPIRED: Words(
        "Authorisation lapsed",
        "Nobody captured the payment in time; the order counts as paid or authorised.",
        "Ask the shopper to pay again, or correct the order.",
    ),
    _C.CAPTURE_DUE: Words(
        "Capture still to do",
        "The order is paid for us, but at the gateway it is only authorised.",
        "Instruct the capture before the authorisation lapses.",
    ),
    _C.REFUND_UNCONFIRMED: Words(
        "Refund in doubt",
        "A refund was sent or accepted, and nothing proves that it took effect.",
        "Do not send it again. Ask the gateway; resolve the instruction with its answer.",
    ),
    _C.REFUND_REJECTED: Words(
        "Refund refused",
        "The gateway refused the refund.",
        "Read the gateway's reason on Instructions; look the refund up before it is given anew.",
    ),
    _C.REFUND_FAILED_AFTER_ACCEPT: Words(
        "Refund failed later",
        "The gateway accepted the refund and did not carry it out.",
        "Pay the shopper another way, or instruct the refund anew.",
    ),
    _C.REFUND_DUE: Words(
        "Refund still to do",
        "The order is refunded for us; at the gateway the money was not given back.",
        "Instruct the refund, or correct the order.",
    ),
    _C.REFUND_UNEXPECTED: Words(
        "Refund nobody ordered",
        "The gateway refunded an order that counts as paid.",
        "Find out who refunded it; correct the order, or report it as a loss.",
    ),
    _C.OVER_CAPTURE: Words(
        "Captured too much",
        "More was captured than was ordered or authorised.",
        "Refund the surplus.",
    ),
    _C.PARTIAL_CAPTURE_UNEXPECTED: Words(
        "Captured only in part",
        "Less was captured than was ordered, and nobody instructed that.",
        "Correct the order if that was meant; otherwise charge the rest.",
    ),
    _C.AMOUNT_OVER: Words(
        "Gateway amount too high",
        "The gateway shows more money than the order.",
        "Compare with the invoice; refund the surplus or correct the order.",
    ),
    _C.AMOUNT_UNDER: Words(
        "Gateway amount too low",
        "The gateway shows less money than the order.",
        "Compare with the invoice; charge the rest or correct the order.",
    ),
    _C.BOOKED_NOT_AT_GATEWAY: Words(
        "Booked, not at gateway",
        "The ledger has income for an order that the gateway does not know.",
        "Reverse the entry, or find the payment under another order number.",
    ),
    _C.MISSING_AT_GATEWAY: Words(
        "Missing at gateway",
        "The order counts as paid or authorised; the gateway knows no such payment.",
        "Do not ship. Look for the payment under another number; else correct the order.",
    ),
    _C.MISSING_IN_ORDERS: Words(
        "Missing in orders",
        "The gateway took money for an order that no order file holds.",
        "Find the order; when there is none, refund the shopper.",
    ),
    _C.REFUND_NOT_BOOKED: Words(
        "Refund not booked",
        "The gateway refunded; the ledger has no refund.",
        "Book the refund.",
    ),
    _C.LEDGER_REFUND_ONLY: Words(
        "Refund only in ledger",
        "The ledger has a refund that the gateway never made.",
        "Instruct the refund if the shopper waits for it; otherwise reverse the entry.",
    ),
    _C.LEDGER_AMOUNT_MISMATCH: Words(
        "Ledger amount differs",
        "Gateway and ledger have the movement with different amounts.",
        "Correct the ledger with a reversing entry and a new one.",
    ),
    _C.FX_DIFFERENCE: Words(
        "Exchange difference",
        "The ledger booked another currency, and the rate of that day leaves a difference.",
        "Book the exchange difference, or correct the rate.",
    ),
    _C.MISSING_IN_LEDGER: Words(
        "Missing in ledger",
        "The gateway took money that the ledger does not have.",
        "Book it.",
    ),
    _C.LEDGER_ONLY: Words(
        "Only in ledger",
        "The ledger has a movement that neither an order nor the gateway knows.",
        "Find out where the entry comes from; reverse it when there is no evidence.",
    ),
    _C.PAYOUT_UNCONFIRMED: Words(
        "Payout in doubt",
        "A payout was sent and nobody knows yet whether it took effect.",
        "Do not send it again. Look it up in the portal; two people say what it shows.",
    ),
    _C.PAYOUT_FAILED: Words(
        "Payout failed",
        "The gateway did not carry out the payout.",
        "Read the gateway's reason on Instructions; correct it and have it approved again.",
    ),
    _C.PAYOUT_NOT_BOOKED: Words(
        "Payout not booked",
        "A payout left and the ledger does not have it.",
        "Book the payout.",
    ),
    _C.PAYOUT_AMOUNT_MISMATCH: Words(
        "Payout amount differs",
        "Payout and ledger entry have different amounts.",
        "Compare with the bank statement; correct the ledger.",
    ),
    _C.LEDGER_PAYOUT_ONLY: Words(
        "Payout only in ledger",
        "The ledger has a payout that nobody sent.",
        "Find the evidence at the bank; reverse the entry when there is none.",
    ),
    _C.SETTLEMENT_MISSING: Words(
        "Missing in settlement",
        "A movement that should have been settled is not in the settlement file.",
        "Ask the gateway when it will be settled.",
    ),
    _C.SETTLEMENT_AMOUNT_MISMATCH: Words(
        "Settled amount differs",
        "The settlement file has another amount than the payment.",
        "Ask the gateway for the difference.",
    ),
    _C.FEE_VARIANCE: Words(
        "Fee differs",
        "The fee is not the one that was agreed.",
        "Compare with the contract; claim the difference.",
    ),
    _C.UNEXPECTED_RECEIPT: Words(
        "Unexpected receipt",
        "Money arrived that no payment explains.",
        "Ask the gateway what it belongs to; hold it as unallocated.",
    ),
    _C.HELD_BACK: Words(
        "Held back",
        "A batch paid out less than its lines, or is not paid out yet.",
        "Ask the gateway why, and when it will be paid out.",
    ),
    _C.FEE_NOT_BOOKED: Words(
        "Fees not booked",
        "The gateway kept fees that the ledger does not have.",
        "Book the fees.",
    ),
    _C.FEE_BOOKED_DIFFERS: Words(
        "Booked fees differ",
        "Fees of the settlement and of the ledger come to different amounts.",
        "Compare with the gateway's invoice; correct the ledger.",
    ),
    _C.RESERVE_NOT_BOOKED: Words(
        "Reserve not booked",
        "The gateway keeps a reserve that the ledger does not have.",
        "Book the reserve.",
    ),
    _C.RESERVE_BOOKED_DIFFERS: Words(
        "Booked reserve differs",
        "Reserves of the settlement and of the ledger come to different amounts.",
        "Compare with what the gateway keeps; correct the ledger.",
    ),
    _C.PAYOUT_TWICE_AT_BANK: Words(
        "Pay-out came twice",
        "One pay-out stands on the statement more than once.",
        "Tell the gateway before it takes the money back; keep it apart until then.",
    ),
    _C.PAYOUT_RETURNED: Words(
        "Pay-out went back",
        "A pay-out arrived at the bank and was sent back.",
        "Find out why (a closed account, a wrong name) and have it paid again.",
    ),
    _C.BANK_AMOUNT_DIFFERS: Words(
        "Bank has another amount",
        "The bank has more or less than the gateway says it paid out.",
        "Compare with the statement; ask the gateway or the bank for the difference.",
    ),
    _C.BANK_FX_DIFFERENCE: Words(
        "Exchange differs",
        "A pay-out arrived in another currency, and not at the rate of that day, or there is none.",
        "Compare with the bank's advice of the exchange; give the rules the rate of that day.",
    ),
    _C.PAYOUT_NOT_AT_BANK: Words(
        "Pay-out not at the bank",
        "A pay-out was due, and no statement of its days has it.",
        "Ask the gateway for the proof of payment; ask the bank with it.",
    ),
    _C.BANK_RECEIPT_UNKNOWN: Words(
        "Unknown at the bank",
        "The gateway is the other side of an entry, and no pay-out explains it.",
        "Ask the gateway which batch it is; hold the money apart until then.",
    ),
    _C.BANK_NOT_BOOKED: Words(
        "Bank not booked",
        "What arrived at the bank and what the books have of it there differ.",
        "Book what arrived, or take back what the bank does not have.",
    ),
    _C.SPLIT_INCOMPLETE: Words(
        "Part payment missing",
        "The order was paid in parts and the parts do not reach its amount.",
        "Find the missing part; charge it or correct the order.",
    ),
    _C.REVIEW_STUCK: Words(
        "Review not finished",
        "We decided the review, and the gateway still shows the payment under review.",
        "Look up in the portal what became of the decision; do not decide it twice.",
    ),
    _C.SUBSCRIPTION_NOT_ENDED: Words(
        "Subscription not ended",
        "We asked to end a subscription, and the gateway refused or nobody knows.",
        "Read the gateway's reason on Instructions, mend it and ask again; of one that ended in "
        "the gateway's pages two people record that.",
    ),
    _C.STALE_PENDING: Words(
        "Pending for too long",
        "The order counts as paid; at the gateway the payment never left pending.",
        "Ask the gateway; when it will not complete, correct the order.",
    ),
}

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


def words_of(code: str) -> Words:
    """The words of a break code; an unknown code stands for itself."""
    try:
        return BREAK_WORDS[BreakCode(code)]
    except ValueError:
        return Words(code, "This code is newer than this report.", "See docs/REPORTS.md.")


def in_words(sentence: str, *, code: str) -> str:
    """A sentence that names a break by its code, with the words of finance before the code."""
    if not code:
        return sentence
    return sentence.removeprefix("Break ").replace(code, f"{words_of(code).title} ({code})", 1)
