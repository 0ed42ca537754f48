"""What page one needs to know beside the journal: how old an authorisation is."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, func, select

from recon.store.nights.runs import Run
from recon.store.schema import observation

IDS_PER_STATEMENT_MAX = 500


def authorised_at(
    connection: Connection, run: Run, *, order_nos: Iterable[str]
) -> dict[str, datetime]:
    """When the gateway dates the payment of each order, the first where there are several."""
    wanted = sorted({order_no for order_no in order_nos if order_no})
    dates: dict[str, datetime] = {}
    for start in range(0, len(wanted), IDS_PER_STATEMENT_MAX):
        part = wanted[start : start + IDS_PER_STATEMENT_MAX]
        rows = connection.execute(
            select(observation.c.order_no, func.min(observation.c.transaction_date))
            .where(
                observation.c.merchant_id == run.merchant_id,
                observation.c.account_id == run.account_id,
                observation.c.order_no.in_(part),
                observation.c.transaction_date.is_not(None),
            )
            .group_by(observation.c.order_no)
        )
        dates.update({row[0]: row[1] for row in rows})
    return dates
