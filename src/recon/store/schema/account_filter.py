"""Rows of one account: the same condition on every table, and the values it wants."""

from typing import Any, Protocol

from sqlalchemy import ColumnElement, Table, bindparam

MERCHANT, ACCOUNT = "of_merchant", "of_account"
"""Parameters of every statement about one account."""


class OfAccount(Protocol):
    """What bears both numbers of an account, such as a run."""

    @property
    def merchant_id(self) -> str:
        """At the gateway."""

    @property
    def account_id(self) -> str:
        """At the gateway."""


def in_account(table: Table) -> tuple[ColumnElement[bool], ...]:
    """The condition of a statement that is made once: the account comes with each execution."""
    columns: Any = table.c
    return (
        columns.merchant_id == bindparam(MERCHANT),
        columns.account_id == bindparam(ACCOUNT),
    )


def account_values(owner: OfAccount) -> dict[str, str]:
    """The values for `in_account`."""
    return values_of(owner.merchant_id, owner.account_id)


def values_of(merchant_id: str, account_id: str, /) -> dict[str, str]:
    """The same, where nothing bears both numbers."""
    return {MERCHANT: merchant_id, ACCOUNT: account_id}
