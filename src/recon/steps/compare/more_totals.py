"""Control totals that the engine cannot ask: the ledger file in money, and the night before.

The engine sees what it is given. That nothing left on the way to it, and that what it carries
forward is what the night before stored, is asked here, of the file's own sums and the database.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from recon.matching.breaks.movements import COMES_IN
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.total_rows import paired
from recon.model.words import ControlTotal, Verdict
from recon.proof.books_bridge import Books, books_totals

if TYPE_CHECKING:
    from recon.store import Connection

CARRIED = "breaks open on the night before, as stored = carried forward"


def with_totals(result: Reconciliation, *, totals: Iterable[ControlTotal]) -> Reconciliation:
    """The result with more totals: NOT PROVEN when one of them fails."""
    more = tuple(totals)
    proven = all(total.passed for total in more)
    verdict = result.verdict if proven else Verdict.NOT_PROVEN
    return replace(result, control_totals=(*result.control_totals, *more), verdict=verdict)


def with_books(result: Reconciliation, *, books: Books, account: tuple[str, str]) -> Reconciliation:
    """T0 in money: what the ledger file holds comes, step by step, to what was compared."""
    totals = books_totals(books, sides=result.sides, account=account)
    return with_totals(result, totals=totals)


def carried_forward(
    connection: "Connection", result: Reconciliation, *, before: str, account: tuple[str, str]
) -> Iterator[ControlTotal]:
    """T7: what the night before stored as open is what this one carries forward.

    Args:
        connection: the store.
        result: of this night.
        before: the run that it carries forward, "" for none.
        account: merchant and account.
    """
    # Plain files have no night before in a database: they need not load one.
    from recon.store.nights import results

    if not before:
        return
    moved = result.movements[~result.movements["movement"].isin(COMES_IN)]
    summary = results.load_summary(connection, before)
    stored = summary.rows["break"] if summary else 0
    yield ControlTotal("T7", CARRIED, *account, "", "count", stored, len(moved))
    at_risk = summary.exposure if summary else {}
    left = {(*account, currency): amount for currency, amount in at_risk.items()}
    right: Counter[tuple[str, str, str]] = Counter()
    for currency, amount in zip(moved["currency_before"], moved["exposure_before"], strict=True):
        right[*account, str(currency)] += int(amount)
    yield from paired("T7", CARRIED, left=left, right=dict(right), measure="amount")
