"""Where the row stands that could not be read, for each order that it leaves not verified."""

from collections.abc import Mapping

from recon.model.figures import NightFigures

Place = tuple[str, str]
"""Account, "" where it could not be read, and order number."""


def unread_rows(figures: NightFigures) -> Mapping[Place, str]:
    """The sentence of each order with a row that could not be read; the newest row counts."""
    tonight = {
        (reject.account_id, reject.order_no): _sentence(reject.source, reject.line, reject.column)
        for reject in figures.rejects
        if reject.order_no
    }
    standing = {
        (reject.account_id, reject.order_no): _sentence(reject.source, reject.line, reject.column)
        + f" Row {reject.reject_id} of `recon rejected-rows`."
        for reject in figures.quarantined
        if reject.order_no
    }
    return tonight | standing


def _sentence(source: str, line: int, column: str) -> str:
    return (
        f"Line {line} of {source} ({column}) could not be read, and nobody delivered this order "
        "again: have it delivered."
    )
