"""What is wrong with cells of a column, by the number of their row; the first reason stays."""

from typing import Any

import numpy as np

CellProblems = dict[int, str]
"""Row number -> why."""


def note_cells(problems: CellProblems, wrong: Any, *, why: str) -> None:
    """Keep `why` of every row where `wrong` holds, unless it has a reason before."""
    rows = np.flatnonzero(np.array(wrong, dtype=bool)).tolist()
    problems.update({row: why for row in rows if row not in problems})
