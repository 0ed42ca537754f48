"""Money that the gateway holds for the merchant, and its fees compared with the ledger's."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recon.model.money import format_minor_units

if TYPE_CHECKING:
    import pandas as pd

BY_LINE_COLUMNS = (
    *("name", "type", "currency", "holds_for", "days", "price"),
    *("lines", "base", "expected", "charged", "over", "under"),
)
"""One row per line of the contract: minor units; `over` and `under` beyond its tolerance, each at
least 0."""
OUTSIDE_COLUMNS = ("reason", "currency", "lines", "charged")
"""One row per reason and currency of fees that no line of the contract covers."""
DIFFERING_COLUMNS = (
    *("merchant_id", "account_id", "currency", "settled_on", "batch_id", "transaction_id"),
    *("order_no", "reference_no", "entry_type", "contract_line"),
    *("base", "expected", "charged", "difference", "given_back", "claimed"),
)
"""One row per settlement line whose fee is not the agreed one; `claimed` is what is left to refund,
0 if too little was charged."""

MONTHS_COLUMNS = (
    *("name", "account", "month", "currency", "reached", "lines", "base"),
    *("late_lines", "late_base", "otherwise"),
)
"""One row per monthly line of the contract, account and month in the files: its volume and the tier
reached; the part that arrived late; and how many settlement lines have another price because of
that."""


def _no_months() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(columns=[*MONTHS_COLUMNS])


@dataclass(frozen=True, slots=True)
class ChargedFees:
    """The fees of a settlement compared with the contract."""

    by_line: "pd.DataFrame"
    """BY_LINE_COLUMNS, in the order of the contract."""
    outside: "pd.DataFrame"
    """OUTSIDE_COLUMNS."""
    differing: "pd.DataFrame"
    """DIFFERING_COLUMNS."""
    totals: tuple[tuple[str, int], ...]
    """Currency and all fees of the settlement, summed independently; sorted."""
    months: "pd.DataFrame" = field(default_factory=_no_months)
    """MONTHS_COLUMNS; empty where no line of the contract is monthly."""

    @property
    def claims(self) -> "pd.DataFrame":
        """The lines for which the gateway owes a refund."""
        return self.differing[self.differing["claimed"] > 0]


BEFORE_FIRST = "opening"
"""`since` of amounts that the gateway held before the first line."""


@dataclass(frozen=True, slots=True)
class HeldBalance:
    """A part of what the gateway holds."""

    amount: int = 0
    """Minor units; negative where the merchant owes the gateway."""
    since: str = ""
    """Day of the oldest item (ISO), BEFORE_FIRST, "" where there is none."""

    def __add__(self, other: "HeldBalance") -> "HeldBalance":
        days = {self.since, other.since} - {""}
        since = BEFORE_FIRST if BEFORE_FIRST in days else min(days, default="")
        return HeldBalance(self.amount + other.amount, since)


@dataclass(frozen=True, slots=True)
class Holding:
    """Money that the gateway holds for one account and currency."""

    merchant_id: str
    account_id: str
    currency: str
    payable: HeldBalance = HeldBalance()
    """Amount owed: batches not paid out, and amounts held back, less debts."""
    held_back: HeldBalance = HeldBalance()
    """Part of the payable: what payouts of batches left out."""
    reserve: HeldBalance = HeldBalance()
    """Amount kept as a security; not part of the payable."""


@dataclass(frozen=True, slots=True)
class FeesCharged:
    """The fees of one account and currency, minor units; positive: taken from the merchant."""

    merchant_id: str
    account_id: str
    currency: str
    charged: int
    """According to the settlement."""
    booked: int | None
    """According to the ledger; None without one."""

    @property
    def difference(self) -> int | None:
        """Charged less booked."""
        return None if self.booked is None else self.charged - self.booked


@dataclass(frozen=True, slots=True)
class GatewayHolds:
    """Holdings and fees of every account and currency, sorted."""

    holdings: tuple[Holding, ...] = ()
    fees: tuple[FeesCharged, ...] = ()

    def by_currency(self) -> dict[str, tuple[Holding, FeesCharged]]:
        """The sums over all accounts, by currency."""
        named = [row.currency for row in self.holdings] + [row.currency for row in self.fees]
        currencies = sorted({*named})
        return {currency: (self._held(currency), self._fees(currency)) for currency in currencies}

    def sentences(self) -> tuple[str, ...]:
        """A short line per currency for a console; zero amounts are left out."""
        both = self.by_currency().values()
        held = [words for holding, _ in both if (words := _held_in_words(holding))]
        fee_texts = [_fees_in_words(fees) for _, fees in both if fees.charged or fees.booked]
        return (
            *(f"The gateway holds: {words}" for words in held or ["nothing"]),
            *(f"Fees: {words}" for words in fee_texts or ["none"]),
        )

    def _held(self, currency: str) -> Holding:
        mine = [row for row in self.holdings if row.currency == currency]
        return Holding(
            *("", "", currency),
            payable=sum((row.payable for row in mine), HeldBalance()),
            held_back=sum((row.held_back for row in mine), HeldBalance()),
            reserve=sum((row.reserve for row in mine), HeldBalance()),
        )

    def _fees(self, currency: str) -> FeesCharged:
        mine = [row for row in self.fees if row.currency == currency]
        booked = [row.booked for row in mine if row.booked is not None]
        known = None if mine and not booked else sum(booked)
        return FeesCharged("", "", currency, sum(row.charged for row in mine), known)


def _held_in_words(held: Holding) -> str:
    parts = {"payable": held.payable, "held back": held.held_back, "reserve": held.reserve}
    return ", ".join(
        f"{name} {_money(part.amount, held.currency)}{f' (oldest {part.since})' * bool(part.since)}"
        for name, part in parts.items()
        if part.amount
    )


def _fees_in_words(fees: FeesCharged) -> str:
    charged = f"charged {_money(fees.charged, fees.currency)}"
    if fees.booked is None or fees.difference is None:
        return f"{charged}, the ledger is not covered"
    booked = f"booked {_money(fees.booked, fees.currency)}"
    return f"{charged}, {booked}, difference {_money(fees.difference, fees.currency)}"


def _money(amount: int, currency: str) -> str:
    return f"{format_minor_units(amount, currency=currency)} {currency}"
