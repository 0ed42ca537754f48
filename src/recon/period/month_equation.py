"""An equation of a month: two sides that must be equal, in each of two engines."""

from dataclasses import dataclass

COUNT, AMOUNT = "count", "amount"


@dataclass(frozen=True, slots=True)
class MonthEquation:
    """Two sides that must be equal, as pandas computes them and as SQL does."""

    id: str
    name: str
    currency: str
    measure: str
    left: int
    right: int
    sql_left: int | None = None
    """None: SQL was not asked, or could not say it; then it does not hold."""
    sql_right: int | None = None

    @property
    def holds(self) -> bool:
        """Whether all four figures are one."""
        return self.left == self.right == self.sql_left == self.sql_right
