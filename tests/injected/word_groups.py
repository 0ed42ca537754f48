"""Codes and flags that no set of order, payment and entry has: of banks, and of cash."""

from recon.model.terms import BreakCode, Flag

BANK_CODES = frozenset(
    {
        BreakCode.PAYOUT_TWICE_AT_BANK,
        BreakCode.PAYOUT_RETURNED,
        BreakCode.BANK_AMOUNT_DIFFERS,
        BreakCode.BANK_FX_DIFFERENCE,
        BreakCode.PAYOUT_NOT_AT_BANK,
        BreakCode.BANK_RECEIPT_UNKNOWN,
        BreakCode.BANK_NOT_BOOKED,
    }
)
"""Codes of payouts and statements of a bank: no set of order, payment and entry comes to one."""
CASH_CODES = frozenset(
    {
        BreakCode.HELD_BACK,
        BreakCode.FEE_NOT_BOOKED,
        BreakCode.FEE_BOOKED_DIFFERS,
        BreakCode.RESERVE_NOT_BOOKED,
        BreakCode.RESERVE_BOOKED_DIFFERS,
    }
)
"""Codes of batches, fees and reserves: no set of order, payment and entry comes to one."""
BANK_FLAGS = frozenset(
    {
        *(Flag.LATE, Flag.BY_AMOUNT, Flag.REPAID, Flag.BANK_CHARGES, Flag.EXCHANGED, Flag.JOINED),
        *(Flag.WITH_BANK, Flag.BOOKED_DIFFERS),
    }
)
"""Words beside what a bank says of a payout."""
CASH_FLAGS = frozenset({Flag.NO_PAYOUT, Flag.OVER_RELEASED, Flag.BEFORE_BOOKS})
"""Words beside what the gateway holds."""
