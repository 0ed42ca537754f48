"""Ageing buckets in business days: which one an age falls into, and how a formula counts them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """An inclusive range of business days."""

    label: str
    first: int
    last: int | None

    def holds(self, age_days: int) -> bool:
        """Whether an age falls into it."""
        return self.first <= age_days and (self.last is None or age_days <= self.last)

    def criteria(self, ages: str) -> str:
        """The COUNTIFS criteria over a range of ages."""
        upper = "" if self.last is None else f',{ages},"<={self.last}"'
        return f'{ages},">={self.first}"{upper}'


BUCKETS = (
    Bucket("0–1 d", 0, 1),  # noqa: RUF001 - an en dash is how a range is written
    Bucket("2–3 d", 2, 3),  # noqa: RUF001 - as above
    Bucket("4–7 d", 4, 7),  # noqa: RUF001 - as above
    Bucket("8–30 d", 8, 30),  # noqa: RUF001 - as above
    Bucket("> 30 d", 31, None),
)
