"""The bridge from the money in the ledger file to the ledger as compared, in named steps.

A step is a signed sum per currency. The total of the file is computed independently (by Arrow and
the database, or from the plain rows by type), so that it is a check that all steps together lead to
what was compared.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.cash.result import with_groups_marked
from recon.matching.frames.coding import by_label, numbered
from recon.matching.frames.grouping import Ints, given
from recon.matching.frames.sources import KEY_COLUMNS, Sources
from recon.matching.frames.versions import CONFLICT, REPEAT, SUPERSEDED, versions
from recon.matching.sides.ledger_side import (
    ADDED,
    CLASSIFIED,
    SIGN,
    are_compared,
    booked,
    entry_versions,
    is_base_type,
)
from recon.matching.sides.payouts import classified_entries
from recon.model.terms import REVERSAL_SUFFIX, EntryType, Reject, SourceKind

REPEATS = "identical repeats"
REPLACED = "replaced by a newer row"
OTHER_ACCOUNTS = "of other accounts"
UNDECLARED = "of accounts that nobody declared"
BEFORE_WINDOW = "from before the window"
KNOWN_BEFORE = "known from earlier files"
FROM_OTHERS = "of other accounts, their other side is here"
NOT_CURRENT = "equal to or older than another row"
STEPS = (
    REPEATS,
    REPLACED,
    OTHER_ACCOUNTS,
    UNDECLARED,
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    FROM_OTHERS,
    NOT_CURRENT,
)
"""In the order in which they are shown."""
Bridge = Mapping[SourceKind, Mapping[str, int]]
"""Source -> step -> number of rows that it adds (negative: removes)."""


def bridge_of(sources: Sources) -> Bridge:
    """Return the row steps of the sources, including those of the comparison itself."""
    orders = sources.orders
    groups = numbered(orders, by=(*KEY_COLUMNS,))
    of_orders = versions(orders, groups=groups, newest="updated_at")
    bridges = {SourceKind.ORDERS: -_superseded(of_orders)}
    if sources.ledger is not None:
        bridges[SourceKind.LEDGER] = -_superseded(entry_versions(sources.ledger))
    return {
        kind: {**sources.arrived.get(kind, {}), NOT_CURRENT: rows} for kind, rows in bridges.items()
    }


def _superseded(outcome: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> int:
    return int(np.isin(outcome, (REPEAT, SUPERSEDED)).sum())


FILE = "in the ledger file"
REJECTED = "rejected rows"
KEYLESS = "adjustments that name no order"
BEFORE_OPENING = "of payments from before the opening date"
RESTATED = "stated in the currency of the payment"
PAID_OUT = "payouts, fees and reserves that are compared"
IDENTICAL = "identical repeats"
SHARED_NUMBER = "entries that share a number, not verified"
LEDGER_STEPS = (
    FILE,
    REJECTED,
    OTHER_ACCOUNTS,
    KEYLESS,
    BEFORE_WINDOW,
    BEFORE_OPENING,
    RESTATED,
    PAID_OUT,
    IDENTICAL,
    SHARED_NUMBER,
)
"""In the order in which they are shown."""
ARRIVED_STEPS = frozenset({FILE, REJECTED, OTHER_ACCOUNTS, BEFORE_WINDOW, BEFORE_OPENING})
"""Steps before the comparison, which takes the others itself."""
LedgerSteps = Mapping[str, Mapping[str, int]]
"""Currency -> step -> minor units that it adds (negative: removes)."""
Steps = Mapping[str, Mapping[str, int]]
"""Step -> currency -> minor units that it adds."""
Sums = Mapping[tuple[str, str], int]
"""(entry type, currency) -> minor units, as booked."""
_OWN_SIGN = {kind.value: sign for kind, sign in SIGN.items() if kind is not EntryType.PAYOUT}


def in_file(sums: Sums) -> dict[str, int]:
    """Return a file's net by currency from its sums by (entry type, currency)."""
    counted: Counter[str] = Counter()
    for (entry_type, currency), amount in sums.items():
        counted[currency] += _sign(entry_type) * amount
    return dict(counted)


def rejected_sums(rejects: Iterable[Reject]) -> dict[tuple[str, str], int]:
    """Sum rejected entries by (entry type, currency), in minor units, where they are readable."""
    sums: Counter[tuple[str, str]] = Counter()
    for reject in rejects:
        if reject.kind is SourceKind.LEDGER and reject.currency:
            sums[reject.entry_type, reject.currency] += reject.amount
    return dict(sums)


def sums_by_type(ledger: pd.DataFrame) -> dict[tuple[str, str], int]:
    """Sum the entries by (entry type, currency), in minor units as written."""
    sums: dict[Any, int] = ledger.groupby(["entry_type", "currency"])["amount"].sum().to_dict()
    return sums


def steps_of_arrived(
    file: Sums, *, rejected: Sums, extract: Sums, entries: Sums, recent: Sums, whole: Sums
) -> LedgerSteps:
    """Return the steps from the file to what a run compares.

    Args:
        file: sums of all its rows: the accepted ones by Arrow, the rejected ones by the database.
        rejected: sums of its rejected rows, computed separately.
        extract: sums of the ledger as it was read.
        entries: of these the entries of this account.
        recent: of these the entries of the window.
        whole: of these all but payments from before the opening date.
    """
    steps = {
        REJECTED: _negative(in_file(rejected)),
        OTHER_ACCOUNTS: _removed(extract, left=entries),
        BEFORE_WINDOW: _removed(entries, left=recent),
        BEFORE_OPENING: _removed(recent, left=whole),
    }
    return _by_currency({FILE: in_file(file), **steps})


def ledger_steps(
    sources: Sources, *, rules: Rules, pieces: Iterable[Steps] | None = None
) -> LedgerSteps:
    """Return all steps, including those of the comparison itself; empty without a ledger.

    Args:
        sources: has the steps before the comparison; of plain files the ledger is used as well.
        rules: how fees are booked.
        pieces: see `steps_of`, of all rows that were compared; None: they are in `sources`.
    """
    if sources.ledger is None:
        return {}
    arrived = sources.ledger_sums
    if not arrived:  # plain files are compared whole
        ledger = sources.ledger.drop(columns=[*ADDED], errors="ignore")
        rejected = _negative(in_file(rejected_sums(sources.rejects)))
        whole = _less(in_file(sums_by_type(ledger)), rejected)
        arrived = _by_currency({FILE: whole, REJECTED: rejected})
    taken: dict[str, Counter[str]] = {}
    for steps in [steps_of(sources, rules=rules)] if pieces is None else pieces:
        for step, sums in steps.items():
            taken.setdefault(step, Counter()).update(sums)
    own = _by_currency(taken)
    return {
        currency: {**arrived.get(currency, {}), **own.get(currency, {})}
        for currency in sorted({*arrived, *own})
    }


def _restated(ledger: pd.DataFrame) -> dict[str, int]:
    """Return how compared entries change from their own currency to that of the payment."""
    if not given(ledger["transaction_amount"]).any():
        return {}
    own = booked(ledger)
    as_booked = np.where(are_compared(ledger), _signed(ledger), 0)
    return _less(_sums(own.currency, own.net), _sums(ledger["currency"], as_booked))


def steps_of(sources: Sources, *, rules: Rules) -> Steps:
    """Return the steps of the comparison itself; all empty without a ledger."""
    if sources.ledger is None:
        return {step: {} for step in (KEYLESS, RESTATED, PAID_OUT, IDENTICAL, SHARED_NUMBER)}
    ledger = sources.ledger.drop(columns=[*ADDED], errors="ignore")
    ours = ledger.assign(**{CLASSIFIED: classified_entries(sources)})
    outcome = entry_versions(ledger)
    unkeyed = is_base_type(ledger["entry_type"], EntryType.ADJUSTMENT) & ~are_compared(ledger)
    own = booked(ledger)
    marked = with_groups_marked(replace(sources, ledger=ours), rules=rules).ledger
    other = booked(ours if marked is None else marked)
    return {
        KEYLESS: _negative(_sums(ledger["currency"], np.where(unkeyed, _signed(ledger), 0))),
        RESTATED: _restated(ledger),
        PAID_OUT: _less(_sums(other.currency, other.net), _sums(own.currency, own.net)),
        IDENTICAL: _negative(_sums(other.currency, np.where(outcome == REPEAT, other.net, 0))),
        SHARED_NUMBER: _negative(
            _sums(other.currency, np.where(outcome == CONFLICT, other.net, 0))
        ),
    }


def _signed(ledger: pd.DataFrame) -> Ints:
    sign = by_label(ledger["entry_type"], of=_sign).astype(np.int64)
    return np.asarray(sign * ledger["amount"].to_numpy(dtype=np.int64), dtype=np.int64)


def _sign(entry_type: str) -> int:
    sign = _OWN_SIGN.get(entry_type.removesuffix(REVERSAL_SUFFIX), 0)
    return -sign if entry_type.endswith(REVERSAL_SUFFIX) else sign


def _removed(before: Sums, *, left: Sums) -> dict[str, int]:
    """Return what is removed between two sums, by currency of the entries: negative."""
    return _less(in_file(left), in_file(before))


def _sums(currency: "pd.Series[str]", amounts: Ints) -> dict[str, int]:
    """Return the sum of the amounts by currency; empty where all amounts are 0."""
    if not amounts.any():
        return {}
    sums: dict[Any, int] = (
        pd.Series(amounts).groupby(currency.reset_index(drop=True)).sum().to_dict()
    )
    return sums


def _less(sums: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: sums.get(name, 0) - other.get(name, 0) for name in {*sums, *other}}


def _negative(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: -total for name, total in sums.items()}


def _by_currency(steps: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Convert step -> currency into currency -> step, without zeros."""
    steps_of: dict[str, dict[str, int]] = {}
    for step, sums in steps.items():
        for currency, amount in sums.items():
            if amount:
                steps_of.setdefault(currency, {})[step] = amount
    return dict(sorted(steps_of.items()))
