"""What was come to of a column of Arrow, which never changes: once, while the column lives."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import ref

Thing = TypeVar("Thing")


class Remembered(Generic[Thing]):
    """One answer for each column that is alive.

    A column is known by its identity: two that hold the same texts are two.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[ref[Any], Thing]] = {}

    def __len__(self) -> int:
        """How many columns are remembered."""
        return len(self._of)

    def of(self, column: Any, *, make: Callable[[Any], Thing]) -> Thing:
        """What `make` comes to of this column; it is asked once."""
        number = id(column)
        if number in self._of and self._of[number][0]() is column:
            return self._of[number][1]
        thing = make(column)
        # The number is another column's only when this one is gone.
        self._of[number] = ref(column, lambda _: self._of.pop(number, None)), thing
        return thing
