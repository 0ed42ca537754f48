"""Orders and payments that may belong to another account of the same merchant.

A night covers one account, but an order may be filed under one account and paid in another. Keys
with one side only are looked up in the merchant's other accounts: their payments at the gateway,
their orders in our tables. What completes a pair joins the comparison, so that the engine reports
one WRONG_ACCOUNT instead of two unrelated breaks.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.instructions.queries import PERSON_WAITS_SECONDS, ask, pace_of
from recon.matching.frames.sources import GATEWAY_COLUMNS, ORDER_COLUMNS, frame_of
from recon.model.errors import ConfigurationError
from recon.model.terms import KeyAnswer
from recon.steps.runtime.environment import Environment, seconds_left
from recon.steps.runtime.gateway_answers import (
    GatewayAnswers,
    order_numbers,
    reply_rows,
    save,
    this_moment,
)
from recon.steps.runtime.night_folder import storages_of
from recon.steps.runtime.window import window_start
from recon.store.nights.answer_parts import sibling_phase
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import StoredOrders

SIBLING_KEYS_MAX = 10_000
"""More one-sided keys than this have one cause that is not a wrong account."""


def siblings_of(run: Run, *, environment: Environment) -> tuple[str, ...]:
    """Ids of the merchant's other declared accounts."""
    declared = (key.split("/", 1) for key in environment.settings.accounts)
    return tuple(
        sorted(
            account_id
            for merchant_id, account_id in declared
            if merchant_id == run.merchant_id and account_id != run.account_id
        )
    )


def ask_siblings(run: Run, *, environment: Environment) -> int:
    """Query one-sided keys in the merchant's other accounts; returns the number of payments."""
    siblings = siblings_of(run, environment=environment)
    if not siblings:
        return 0
    since = window_start(run, rules=environment.settings.rules)
    with environment.store.reading() as connection:
        ordered = StoredOrders(connection, run, storages_of(environment))
        orders = order_numbers(ordered.numbers(spans=[(since, None)]))
        answered = GatewayAnswers(connection, run, environment).rows(columns=["answer"])
    # Our own orders without a payment, and payments without an order of ours.
    answer = answered["answer"].cast(pa.string())
    is_ordered = pc.is_in(answered["order_no"], value_set=orders)
    is_unpaid = pc.and_(is_ordered, pc.equal(answer, KeyAnswer.NOT_FOUND.value))
    is_paid = pc.and_(pc.invert(is_ordered), pc.equal(answer, KeyAnswer.FOUND.value))
    lonely = order_numbers([answered["order_no"].filter(pc.or_(is_unpaid, is_paid))])
    if not 0 < len(lonely) <= SIBLING_KEYS_MAX:
        return 0
    count = 0
    for account_id in siblings:
        moment = this_moment(environment)
        try:
            replies = asyncio.run(
                ask(
                    lonely.to_pylist(),
                    account=(run.merchant_id, account_id),
                    settings=environment.settings,
                    clock=environment.clock,
                    randomness=environment.randomness,
                    pace=pace_of(
                        environment.settings.gateway,
                        retry_max=PERSON_WAITS_SECONDS,
                        ends_in_seconds=seconds_left(run, environment=environment),
                    ),
                )
            )
        except ConfigurationError:
            # The other account's own night reports its configuration errors, not this one.
            continue
        phase = sibling_phase(account_id)
        rows = reply_rows(run, replies, sent=moment, phase=phase, account_id=account_id)
        save(run, rows, environment=environment)
        count += len(replies.observations)
    return count


@dataclass(frozen=True, slots=True)
class OfSiblings:
    """Rows of the merchant's other accounts that complete a one-sided key of this account."""

    orders: pd.DataFrame = field(default_factory=lambda: frame_of((), columns=ORDER_COLUMNS))
    gateway: pd.DataFrame = field(default_factory=lambda: frame_of((), columns=GATEWAY_COLUMNS))


def of_siblings(
    run: Run,
    *,
    unpaid: Sequence[str],
    unordered: Sequence[str],
    siblings: tuple[str, ...],
    last_file: int,
    environment: Environment,
) -> OfSiblings:
    """Rows in other accounts for keys that here only orders (`unpaid`) or only payments have."""
    with environment.store.reading() as connection:
        frame = GatewayAnswers(connection, run, environment).sibling_frame()
        known = StoredOrders(connection, run, storages_of(environment), last_file)
        orders = known.of_keys(siblings, order_nos=sorted({*unpaid, *unordered}))
    paid_there = frame["answer"] == KeyAnswer.FOUND.value
    # An order that is paid in the account it is filed under, or a payment with an order in its own
    # account, is that account's own business.
    lonely_payments = frame[
        paid_there & frame["order_no"].isin(unpaid) & ~_in(frame, keys=_keys(orders))
    ]
    absent = frame[~paid_there]
    lonely_orders = orders[orders["order_no"].isin(unordered) & _in(orders, keys=_keys(absent))]
    silent = absent[_in(absent, keys=_keys(lonely_orders))]
    return OfSiblings(lonely_orders, pd.concat([lonely_payments, silent]))


def _keys(frame: pd.DataFrame) -> set[tuple[str, str]]:
    return set(zip(frame["account_id"], frame["order_no"], strict=True))


def _in(frame: pd.DataFrame, *, keys: set[tuple[str, str]]) -> "pd.Series[bool]":
    pairs = zip(frame["account_id"], frame["order_no"], strict=True)
    return pd.Series([pair in keys for pair in pairs], index=frame.index, dtype=bool)
