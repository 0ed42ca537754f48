"""What the gateway charged beside what the fee contract says: for the workbook and for a claim."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

BY_LINE_COLUMNS = (
    *("name", "type", "currency", "holds_for", "days", "price"),
    *("lines", "base", "expected", "charged", "over", "under"),
)
"""One row per line of the contract: minor units; `over` and `under` beyond its tolerance, each 0 or
more."""
OUTSIDE_COLUMNS = ("reason", "currency", "lines", "charged")
"""One row per reason and currency of what no line of the contract holds for."""
DIFFERING_COLUMNS = (
    *("merchant_id", "account_id", "currency", "settled_on", "batch_id", "transaction_id"),
    *("order_no", "reference_no", "entry_type", "contract_line"),
    *("base", "expected", "charged", "difference", "given_back", "claimed"),
)
"""One row per settlement line whose fee is not the agreed one; `claimed` is what is left to give
back, 0 of one that was charged too little."""

MONTHS_COLUMNS = (
    *("name", "account", "month", "currency", "reached", "lines", "base"),
    *("late_lines", "late_base", "otherwise"),
)
"""One row per line of the contract that goes by months, account and month that the files tell of:
what it came to and the tier that this reaches; of it what came late; and how many settlement lines
cost otherwise because of that."""


def _no_months() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(columns=[*MONTHS_COLUMNS])


@dataclass(frozen=True, slots=True)
class ChargedFees:
    """The fees of a settlement by the contract."""

    by_line: "pd.DataFrame"
    """BY_LINE_COLUMNS, in the order of the contract."""
    outside: "pd.DataFrame"
    """OUTSIDE_COLUMNS."""
    differing: "pd.DataFrame"
    """DIFFERING_COLUMNS."""
    totals: tuple[tuple[str, int], ...]
    """Currency and all fees of the settlement, added up by themselves; sorted."""
    months: "pd.DataFrame" = field(default_factory=_no_months)
    """MONTHS_COLUMNS; without a row where no line of the contract goes by months."""

    @property
    def claims(self) -> "pd.DataFrame":
        """The lines that the gateway is to give something back of."""
        return self.differing[self.differing["claimed"] > 0]
