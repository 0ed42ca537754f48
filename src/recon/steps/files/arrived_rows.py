"""How many rows went where between the files of a night and what it compares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pandas as pd

from recon.matching.frames.sources import Sources
from recon.model.words import SourceFile, SourceKind
from recon.proof.books_bridge import Books, FileMoney, arrived_books
from recon.proof.bridge import BEFORE_WINDOW, FROM_OTHERS, OTHER_ACCOUNTS
from recon.steps.files.short_files import cut_files_told
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.nights import order_bridge
from recon.store.nights.facts_rows import Account
from recon.store.nights.order_bridge import InView
from recon.store.nights.runs import Run

Extract = tuple[pd.DataFrame, SourceFile] | None


def order_steps(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    older: Sequence[str],
    until: int,
    environment: Environment,
) -> Mapping[str, int]:
    """What became of the order rows of tonight's files (see store.order_bridge)."""
    return order_bridge.order_steps(
        connection,
        run,
        view=InView(since, older),
        until=until,
        declared=declared_accounts(environment),
        storages=storages_of(environment),
    )


def declared_accounts(environment: Environment) -> frozenset[Account]:
    """Every account that has a night of its own."""
    pairs = (name.split("/", 1) for name in environment.settings.accounts)
    return frozenset((merchant_id, account_id) for merchant_id, account_id in pairs)


def with_arrived(
    whole: Sources,
    *,
    own: Sources,
    orders: Mapping[str, int],
    extract: Extract,
    entries: pd.DataFrame | None,
    money: FileMoney,
) -> Sources:
    """The sources with the steps of their rows.

    Args:
        whole: what is compared.
        own: before rows of the merchant's other accounts joined.
        orders: the steps of the order rows.
        extract: the ledger as it was read.
        entries: its entries of this account.
        money: what the ledger file and its rejected rows hold, of any account.
    """
    books: Books = {}
    joined = len(whole.orders) - len(own.orders)
    arrived = {SourceKind.ORDERS: {**orders, FROM_OTHERS: joined}}
    recent = own.ledger
    if extract and entries is not None and recent is not None and whole.ledger is not None:
        books = arrived_books(
            money,
            extract=extract[0],
            entries=entries,
            recent=recent,
            whole=whole.ledger,
        )
        arrived[SourceKind.LEDGER] = {
            OTHER_ACCOUNTS: len(entries) - len(extract[0]),
            BEFORE_WINDOW: len(whole.ledger) - len(entries),
        }
    return replace(whole, arrived=arrived, books=books)


def files_told(run: Run, *, until: int, environment: Environment) -> list[str]:
    """What page one says of the files: accounts that nobody declared, and files that look cut."""
    undeclared = undeclared_told(run, until=until, environment=environment)
    return [*undeclared, *cut_files_told(run, until=until, environment=environment)]


def undeclared_told(run: Run, *, until: int, environment: Environment) -> list[str]:
    """A sentence when order rows name accounts that nobody declared: no night compares them."""
    with environment.store.reading() as connection:
        undeclared = order_bridge.undeclared_accounts(
            connection, run, until=until, declared=declared_accounts(environment)
        )
    if not undeclared:
        return []
    named = ", ".join(undeclared[:_SHOWN_MAX])
    sentence = f"Order rows name accounts that nobody declared ({named}): no night compares them."
    return [f"{sentence} Declare them in merchants.toml, or have the file corrected."]


_SHOWN_MAX = 3
