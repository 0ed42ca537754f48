"""Codes and flags that no set of order, payment and entry has: of banks, and of cash."""

from recon.model.terms import BreakCode, Flag

OF_BANK = (
    "PAYOUT_TWICE_AT_BANK PAYOUT_RETURNED BANK_AMOUNT_DIFFERS BANK_FX_DIFFERENCE "
    "PAYOUT_NOT_AT_BANK BANK_RECEIPT_UNKNOWN BANK_NOT_BOOKED"
)
OF_CASH = "HELD_BACK FEE_NOT_BOOKED FEE_BOOKED_DIFFERS RESERVE_NOT_BOOKED RESERVE_BOOKED_DIFFERS"
BANK_CODES = frozenset(map(BreakCode, OF_BANK.split()))
CASH_CODES = frozenset(map(BreakCode, OF_CASH.split()))
BANK_FLAGS = frozenset(
    {
        *(Flag.LATE, Flag.BY_AMOUNT, Flag.REPAID, Flag.BANK_CHARGES, Flag.EXCHANGED, Flag.JOINED),
        *(Flag.WITH_BANK, Flag.BOOKED_DIFFERS),
    }
)
CASH_FLAGS = frozenset({Flag.NO_PAYOUT, Flag.OVER_RELEASED, Flag.BEFORE_LEDGER})
