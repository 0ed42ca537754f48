"""Cases as texts: the rows of a set, what it comes to, and the sentence that a controller reads.

    OVER_REFUND: more refunded than captured
      order refunded amount=101.01 / payment refunded amount=101.01 refunded_amount=120.00
      > The gateway shows 120.00 EUR refunded, more than the captured 101.01 EUR.

Between slashes stands a row of one side, its words and its cells (or `rules` and a table of them);
what it does not say, `conftest.Case` does. In `outcome_cases.txt` each case has all that its set
comes to; in `reason_cases.txt` its code and its sentence. There each amount is another one, and the
sentences were written from the rows, not from what the engine answered.
"""

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.recon.matching.conftest import JUST_NOW, LONG_AGO

HERE = Path(__file__).parent
MONEY = frozenset(
    {
        *("amount", "refund_amount", "authorised_amount", "captured_amount", "refunded_amount"),
        *("expected_captured_amount", "transaction_amount", "gross", "fee"),
    }
)
"""Cells in major units, with all decimals of their currency."""
DAYS = frozenset(
    {
        *("queried_at", "ordered_at", "updated_at", "transaction_date", "booked_at"),
        *("outcome_at", "sent_at", "approved_at", "since"),
    }
)
WHEN = {
    "none": None,
    "long_ago": LONG_AGO,
    "just_now": JUST_NOW,
    "earlier": datetime(2026, 9, 1, tzinfo=UTC),
    "ahead": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
}


class Written(NamedTuple):
    """A case, as it is written."""

    name: str
    comes_to: str
    rows: tuple[str, ...]
    said: str
    """"" where no sentence is asked for."""

    def build(self, case: Any) -> Any:
        """The case with these rows."""
        for row in self.rows:
            side, _, rest = row.partition(" ")
            if side == "rules":
                for name, table in tomllib.loads(f"rules = {{ {rest} }}")["rules"].items():
                    case.ruled(**{name: table})
                continue
            labels = rest.split()
            cells = dict(_cell(label) for label in labels if "=" in label)
            getattr(case, side)(*(label for label in labels if "=" not in label), **cells)
        return case


def _cell(label: str) -> tuple[str, object]:
    name, _, text = label.partition("=")
    if name in MONEY:
        return name, int(text.replace(".", ""))
    if name in DAYS:
        when = WHEN[text] if text in WHEN else datetime.fromisoformat(text).replace(tzinfo=UTC)
        return name, when
    return name, int(text) if name == "line" else text


def _written(file: str) -> tuple[Written, ...]:
    cases = []
    for text in re.split(r"\n(?!  )", (HERE / file).read_text().rstrip()):
        head, *lines = text.splitlines()
        comes_to, _, name = head.partition(": ")
        said = [line.removeprefix("  > ") for line in lines if line.startswith("  > ")]
        rows = " ".join(line.strip() for line in lines if not line.startswith("  > "))
        cases.append(Written(name, comes_to, tuple(rows.split(" / ")), "".join(said)))
    return tuple(cases)


OUTCOMES = _written("outcome_cases.txt")
INJECTED = _written("reason_cases.txt")
