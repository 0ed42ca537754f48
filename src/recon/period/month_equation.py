"""An equation of a month: two sides that must be equal, in each of two engines."""

from dataclasses import dataclass

from recon.model.money import format_minor_units

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
    def both_sides(self) -> str:
        """What both engines say of both sides, as people read it: money in major units."""
        sides = (self.left, self.right, self.sql_left, self.sql_right)
        texts = [
            format_minor_units(side, currency=self.currency)
            if side is not None and self.measure == AMOUNT and self.currency
            else f"{side}"
            for side in sides
        ]
        return f"pandas {texts[0]} and {texts[1]}, SQL {texts[2]} and {texts[3]}"

    @property
    def holds(self) -> bool:
        """Whether all four figures are one."""
        return self.left == self.right == self.sql_left == self.sql_right
