"""T3 over keys that two sources hold once."""

from typing import Any

import pandas as pd
import pytest

from recon.matching.frames import same_words
from recon.matching.frames.coding import in_one_place
from recon.matching.frames.same_words import held_once
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    KEY_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.proof.totals_of_inputs import query_totals

KEYS = tuple(f"A{number}" for number in range(400))


def rows_of(names: tuple[str, ...], *, columns: Any) -> pd.DataFrame:
    """A row for each key, of one account."""
    cells = {"merchant_id": "100042", "account_id": "100042001", "answer": "found", "line": 0}
    return frame_of(({**cells, "order_no": name} for name in names), columns=columns)


def t3(asked: tuple[str, ...], *, answered: tuple[str, ...]) -> tuple[int, int]:
    """Both sides of T3, the columns held once where they say the same."""
    frames = {
        "universe": rows_of(asked, columns=KEY_COLUMNS),
        "gateway": rows_of(answered, columns=GATEWAY_COLUMNS),
    }
    sources = Sources(
        orders=frame_of([], columns=ORDER_COLUMNS),
        ledger=None,
        instructions=None,
        **held_once(frames),
    )
    columns = (sources.universe["order_no"], sources.gateway["order_no"])
    assert in_one_place(*columns) == (asked == answered)
    nothing: Any = None
    (total,) = query_totals(sources, joined=nothing)
    return total.left, total.right


@pytest.mark.parametrize(
    ("asked", "answered", "sides"),
    [
        (KEYS, KEYS, (400, 400)),
        ((*KEYS, "A7"), (*KEYS, "A7"), (400, 400)),
        (KEYS, KEYS[:-1], (400, 399)),
        (KEYS, (*KEYS[:-1], "B1"), (400, 399)),
    ],
)
def test_keys_that_are_asked_and_answered(
    monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, ...],
    answered: tuple[str, ...],
    sides: tuple[int, int],
) -> None:
    """A key counts once, however often it stands there, and one without an answer is missed."""
    monkeypatch.setattr(same_words, "PIECE_ROWS", 2)

    assert t3(asked, answered=answered) == sides
