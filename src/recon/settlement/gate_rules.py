"""The gate before money: proofs that must hold before a single byte is sent.

T0 to T3 and T9 as they stand before settling, the history chain, no earlier night that is NOT
PROVEN, and books that could be read. A failed total or a broken chain closes the gate for
everything; an unproven earlier night, or books that could not be read, hold refunds and payouts,
while captures and cancels go on (authorisations lapse).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from recon.model.words import ControlTotal, InstructionKind

HELD_KINDS = frozenset({InstructionKind.REFUND, InstructionKind.PAYOUT})


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate says tonight."""

    closed_because: str
    """Not empty: nothing may be sent."""
    held_because: str
    """Not empty: refunds and payouts wait."""

    def hold_on(self, kind: InstructionKind) -> str:
        """Why this kind of instruction waits tonight; "" when it may go."""
        return self.closed_because or (self.held_because if kind in HELD_KINDS else "")


def judge(
    *,
    totals: Sequence[ControlTotal],
    chain_problem: str,
    unproven_nights: Mapping[date, str],
    books_unread: str = "",
) -> Gate:
    """The gate from its proofs.

    `unproven_nights` has beside each date why its release does not count; `books_unread` says why
    the ledger was not read.
    """
    failed = [total for total in totals if not total.passed]
    closed = ""
    if chain_problem:
        closed = f"the history does not hold: {chain_problem}"
    elif failed:
        listing = "; ".join(
            f"{total.id} {total.name} {total.account_id}: {total.left} is not {total.right}"
            for total in failed[:3]
        )
        closed = f"a control total before money does not tie: {listing}"
    held = []
    if unproven_nights:
        dates = ", ".join(
            f"{day} ({why})" if why else str(day) for day, why in unproven_nights.items()
        )
        held.append(
            f"the night of {dates} is NOT PROVEN; refunds wait until it is run again and proven, "
            "or two people release it (`recon release`)"
        )
    if books_unread:
        held.append(
            f"the ledger was not read ({books_unread}); refunds and payouts wait until it is, "
            "captures and cancels go on"
        )
    return Gate(closed, "; ".join(held))
