"""What the words of a statement are called for people: one name for console, files and workbook."""

from collections.abc import Mapping

MOVEMENTS: Mapping[str, str] = {
    "capture": "Captures",
    "refund": "Refunds",
    "chargeback": "Chargebacks",
    "won_back": "Chargebacks won back",
    "fee_on_captures": "Fees on captures",
    "fee_on_refunds": "Fees on refunds, given back",
    "fee_on_chargebacks": "Fees on chargebacks",
    "fee_of_account": "Fees in lines of their own",
    "fee_on_others": "Other fees",
    "adjustment": "Adjustments",
    "payee": "Paid to payees for us",
    "pay_out": "Pay-outs",
}
"""Kinds of movements in the order of a statement."""
ITEMS: Mapping[str, str] = {
    "not_settled": "Captured or given back, not settled",
    "never_shown": "Settled, never shown by the gateway",
    "opening": "Owed from before the first line",
    "no_payout": "Settled, not paid out",
    "item": "Held back",
    "debt": "Owed to the gateway",
    "beyond": "Paid beyond what there was",
    "reserve": "Reserve",
}
"""Classes of what is open, in the order of a statement."""
TRANSIT: Mapping[str, str] = {
    "paid": "Paid out",
    "received": "At the bank",
    "returned": "Returned by the bank",
    "kept": "Kept or exchanged by the bank",
}
DIFFERENCES: Mapping[str, str] = {
    "booked_later": "Took place by then, booked later",
    "booked_earlier": "Booked by then, took place later",
    "open": "Open: see the breaks and what waits",
    "fees": "Fees charged by then, less those booked",
    "pay-outs": "Paid out by then, less what is booked of it",
    "not_in_batch": "Adjustments booked, in no batch of the gateway yet",
    "not_booked": "Adjustments of the gateway, not booked yet",
}
STRADDLES: Mapping[str, str] = {
    "sold": "Sold in one month, captured in another",
    "settled": "Captured in one month, settled in another",
    "at_bank": "Paid out in one month, at the bank in another",
    "old_sale": "Refund of an earlier month's sale",
    "late": "Told after the month's last night",
    "prior": "Of a closed month, told after its close",
    "entry_vanished": "Ledger entries deleted, not reversed",
}
RESERVE_MOVED = "Reserve: kept (+), released (-)"
OUTSIDE = "Before the first settled day, settled by no line: not counted"
BOOKED = "Booked"


def entry_words(entry_type: str) -> str:
    """The type of an entry as people read it: `capture reversal`."""
    return entry_type.replace("_", " ").capitalize()
