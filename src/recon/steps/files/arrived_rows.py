"""How many rows went where between the files of a night and what it compares."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import pandas as pd

from recon.matching.frames.sources import LoadCounts, Sources
from recon.model.words import SourceFile, SourceKind
from recon.proof.books_bridge import FileMoney, Sums, arrived_books, sums_by_type
from recon.proof.bridge import BEFORE_WINDOW, OTHER_ACCOUNTS
from recon.steps.files.short_files import cut_files_told
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.nights import order_bridge
from recon.store.nights.facts_rows import Account
from recon.store.nights.order_bridge import InView, OrderSteps
from recon.store.nights.runs import Run


def order_steps(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    older: Sequence[str],
    until: int,
    environment: Environment,
) -> OrderSteps:
    """What became of the order rows of tonight's files (see store.order_bridge)."""
    return order_bridge.order_steps(
        connection,
        run,
        view=InView(since, older),
        until=until,
        declared=declared_accounts(environment),
        storages=storages_of(environment),
    )


def with_taken(
    loaded: Iterable[tuple[SourceFile, LoadCounts]], *, taken: Mapping[str, LoadCounts]
) -> dict[str, LoadCounts]:
    """Name of each file -> which of its rows were new, repeats, or took another's place."""
    return {source.name: taken.get(source.name, counts) for source, counts in loaded}


def declared_accounts(environment: Environment) -> frozenset[Account]:
    """Every account that has a night of its own."""
    pairs = (name.split("/", 1) for name in environment.settings.accounts)
    return frozenset((merchant_id, account_id) for merchant_id, account_id in pairs)


class BookRows(NamedTuple):
    """Entries of the books, counted and added up by themselves."""

    rows: int
    sums: Sums

    def with_more(self, entries: pd.DataFrame) -> "BookRows":
        """These and some others."""
        sums = Counter(self.sums)
        sums.update(sums_by_type(entries))
        return BookRows(self.rows + len(entries), sums)


class ArrivedBooks(NamedTuple):
    """What became of the entries of a ledger that was read."""

    money: FileMoney
    """What the ledger file and its rejected rows hold, of any account."""
    extract: BookRows
    """As it was read."""
    entries: BookRows
    """Those of this account."""
    recent: BookRows
    """Those of the window."""
    whole: BookRows
    """Those that are compared."""


def with_steps(
    sources: Sources, *, orders: Mapping[str, int], books: ArrivedBooks | None
) -> Sources:
    """The sources with the steps of the order rows, and of the entries where books are compared."""
    arrived = {SourceKind.ORDERS: orders}
    if books is None:
        return replace(sources, arrived=arrived)
    money, extract, entries, recent, whole = books
    arrived[SourceKind.LEDGER] = {
        OTHER_ACCOUNTS: entries.rows - extract.rows,
        BEFORE_WINDOW: whole.rows - entries.rows,
    }
    in_money = arrived_books(
        money,
        extract=extract.sums,
        entries=entries.sums,
        recent=recent.sums,
        whole=whole.sums,
    )
    return replace(sources, arrived=arrived, books=in_money)


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
