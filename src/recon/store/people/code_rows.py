"""Which codes the gateway's answers have shown so far, for the list of those nobody has mapped."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from recon.store.schema import observation

CODES_MAX = 1_000
FIELDS = ("payment_status", "query_result")


@dataclass(frozen=True, slots=True)
class SeenCode:
    """One code of one field."""

    field: str
    code: str
    count: int
    order_no: str
    """One of the orders that showed it."""


def codes_seen(connection: Connection, *, merchant_id: str, account_id: str) -> list[SeenCode]:
    """Every code of an account's stored answers, the most frequent first."""
    return [
        SeenCode(field, row.code, row.times, row.order_no)
        for field in FIELDS
        for row in connection.execute(
            select(
                observation.c[field].label("code"),
                func.count().label("times"),
                func.min(observation.c.order_no).label("order_no"),
            )
            .where(
                observation.c.merchant_id == merchant_id,
                observation.c.account_id == account_id,
                observation.c[field] != "",
            )
            .group_by(observation.c[field])
            .order_by(func.count().desc(), observation.c[field])
            .limit(CODES_MAX)
        )
    ]
