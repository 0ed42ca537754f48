"""A past night compared again from its sealed inputs, which proves that its result can be rebuilt.

Only what the night itself had read counts; files, answers, instructions and rules that came later
do not. Nothing in the database is changed.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.coding import is_among
from recon.matching.frames.grouping import Ints
from recon.matching.frames.sources import LEDGER_COLUMNS, Previous, Sources, frame_of
from recon.matching.sides.gateway_side import answer_amounts
from recon.matching.sides.ledger_side import left_behind
from recon.matching.sides.orders_side import expected
from recon.model.errors import ConfigurationError, InputsMissingError, UsageError
from recon.model.money import format_minor_units
from recon.model.terms import KeyAnswer
from recon.proof.engine import reconcile as compare
from recon.proof.proven import proven
from recon.steps.compare.result_files import output_folder, result_files, write_files
from recon.steps.compare.stored_sources import stored_sources
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_folder import StoredLedger, storages_of
from recon.steps.runtime.window import BEFORE_ALL
from recon.store import Connection
from recon.store.nights import input_rows, runs
from recon.store.nights.input_rows import StoredInputs
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import StoredOrders

NOT_STORED = (
    "run {} did not keep what it compared, for it never came to compare: it cannot be rebuilt; "
    "its workbook and result stay"
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A night that was compared again, with its inputs and the new result."""

    run: Run
    rules: Rules
    sources: Sources
    previous: Previous | None
    result: Reconciliation
    digest_then: str
    version_then: str
    """Version of the product when the night ran."""

    @property
    def same(self) -> bool:
        """Whether the result is the one that the night had."""
        return self.result.digest == self.digest_then


def rebuild_night(name: str, *, out: Path | None, environment: Environment) -> Rebuilt:
    """Compare a past night (a run id or a business date) again, and write its result files.

    Raises:
        UsageError: there is no such finished night.
        InputsMissingError: an input of the night is not stored any more.
        ArchiveError: its folder cannot be reached, or differs from what was sealed.
        OutputError: the folder cannot be written.
    """
    with environment.store.reading() as connection:
        run = run_named(connection, name)
    again = rebuilt(run, environment=environment)
    if out is not None:
        with output_folder(out) as place:
            texts = result_files(
                proven(
                    again.result,
                    sources=again.sources,
                    rules=again.rules,
                    previous=again.previous,
                    account=run.account,
                ),
                rejects=again.sources.rejects,
                files=again.sources.files,
            )
            write_files(place, texts)
    return again


def rebuilt(run: Run, *, environment: Environment) -> Rebuilt:
    """Compare the night of a run again, from its sealed inputs.

    Raises:
        InputsMissingError: the night did not seal its inputs, or its rules are not stored any more.
        ArchiveError: its folder cannot be reached, or differs from what was sealed.
    """
    inputs, rules, digest_then = stored_inputs(run, environment=environment)
    sources, previous = compared_then(run, environment=environment)
    result = compare(sources, rules=rules, as_of=run.as_of, previous=previous)
    return Rebuilt(run, rules, sources, previous, result, digest_then, inputs.product_version)


def compared_then(run: Run, *, environment: Environment) -> tuple[Sources, Previous | None]:
    """The sources that a run compared and what it carried forward, as it sealed them.

    Raises:
        InputsMissingError: it sealed neither.
        ArchiveError: its folder cannot be reached, or differs from what was sealed.
    """
    with environment.store.reading() as connection:
        stored = stored_sources(connection, run, environment=environment)
    if stored is None:
        raise InputsMissingError(NOT_STORED.format(run.run_id))
    return stored


def run_named(connection: Connection, name: str) -> Run:
    """The run of an id, or the finished run of a business date (a live run before a dry one).

    Raises:
        UsageError: there is none, or several accounts have one.
    """
    finished = runs.finished(connection)
    named = [
        night
        for night in finished
        if night.run_id == name or (str(night.business_date) == name and not night.replaced)
    ]
    if not named:
        newest = max((night.business_date for night in finished), default=None)
        which = f"the newest is {newest}" if newest else "no night is finished yet"
        msg = f"there is no finished night {name}: name a run or its business date ({which})"
        raise UsageError(msg)
    if len(named) > 1:
        msg = f"several accounts have a night {name}: name the run (`recon nights` lists them)"
        raise UsageError(msg)
    return named[0]


def stored_inputs(run: Run, *, environment: Environment) -> tuple[StoredInputs, Rules, str]:
    """The record of what a run read, its rules, and the digest of its result at that time.

    Raises:
        InputsMissingError: the run did not store its inputs, or this version cannot read its rules.
        StoreError: the stored rules were changed other than by this program.
    """
    with environment.store.reading() as connection:
        inputs = input_rows.load(connection, run.run_id)
        if inputs is None:
            raise InputsMissingError(NOT_STORED.format(run.run_id))
        digest_then = runs.digests_of(connection, run.run_id)["result_digest"]
        try:
            rules = runs.load(connection, inputs.rules_digest)
        except ConfigurationError as error:
            msg = f"run {run.run_id} cannot be rebuilt by this version of recon: {error}"
            raise InputsMissingError(msg) from error
    if rules is None:
        msg = f"the rules of run {run.run_id} are not stored any more: it cannot be rebuilt"
        raise InputsMissingError(msg)
    return inputs, rules, digest_then


COLUMNS = ("what", "id", "order_no", "currency", "amount", "at")
"""Columns of the items of an opening balance; amount is an item's net in minor units."""
FILE = "opening.csv"


@dataclass(frozen=True, slots=True)
class OpeningLine:
    """The items of one kind and currency, summed."""

    what: str
    currency: str
    items: int
    amount: int
    """Sum of their nets, minor units."""
    oldest: str
    newest: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The items that one night did not compare, as they are older than its window."""

    run: Run
    lines: tuple[OpeningLine, ...]
    items: pd.DataFrame
    """Frame with COLUMNS."""


def opening_of(name: str, *, environment: Environment) -> Opening:
    """The opening balance of a past night (a run id or a business date), from what is stored.

    Raises:
        UsageError: there is no such finished night.
        InputsMissingError: an input of the night is not stored any more.
        ArchiveError: its folder cannot be reached, or differs from what was sealed.
    """
    with environment.store.reading() as connection:
        run = run_named(connection, name)
    inputs, _, _ = stored_inputs(run, environment=environment)
    used, _ = compared_then(run, environment=environment)
    rules, ours = environment.settings.rules, partial(_ours, run=run)
    with environment.store.reading() as connection:
        orders = StoredOrders(connection, run, storages_of(environment), inputs.last_file)
        answers = GatewayAnswers(connection, run, environment).gateway_frame()
        ledger = StoredLedger(connection, run, environment)
        none = [frame_of((), columns=LEDGER_COLUMNS)]
        has_ledger = ledger.source is not None and used.ledger is not None
        entries = pd.concat(
            [*none, *(ledger.frames([*LEDGER_COLUMNS]) if has_ledger else ())], ignore_index=True
        )
        old = _without(orders.since(BEFORE_ALL), named=ours(used.orders)["order_no"])
        paid = answers[answers["answer"].eq(KeyAnswer.FOUND.value)]
        paid = _without(paid, named=ours(used.gateway)["order_no"])
        if used.ledger is not None:
            entries = _without(entries, by="entry_id", named=used.ledger["entry_id"])
        currency, _, net = left_behind(entries)
        parts = [
            _items("orders", old, net=expected(old).net, identity="order_no", at="ordered_at"),
            _items(
                "payments",
                paid,
                net=answer_amounts(paid, rules=rules).net,
                identity="transaction_id",
                at="transaction_date",
            ),
            _items(
                "ledger entries",
                entries.assign(currency=currency),
                net=net,
                identity="entry_id",
                at="booked_at",
            ),
        ]
    items = pd.concat(parts, ignore_index=True).sort_values([*COLUMNS], kind="stable")
    items = items.reset_index(drop=True)
    return Opening(run, _lines(items), items)


def write_opening(opening: Opening, *, folder: Path) -> Path:
    """Write the items as CSV, amounts with the decimals of their currency.

    Raises:
        OutputError: the folder cannot be written.
    """
    cells = zip(opening.items["amount"].tolist(), opening.items["currency"].tolist(), strict=True)
    written = [format_minor_units(amount, currency=currency) for amount, currency in cells]
    text = opening.items.assign(amount=written).to_csv(index=False, lineterminator="\n")
    with output_folder(folder) as place:
        write_files(place, {FILE: text})
    return folder / FILE


def _without(rows: pd.DataFrame, *, by: str = "order_no", named: "pd.Series[str]") -> pd.DataFrame:
    return rows[~is_among(rows[by], named)].reset_index(drop=True)


def _ours(rows: pd.DataFrame, *, run: Run) -> pd.DataFrame:
    """Rows of the run's account; other accounts of the merchant may be compared with them."""
    return rows[rows["merchant_id"].eq(run.merchant_id) & rows["account_id"].eq(run.account_id)]


def _items(what: str, rows: pd.DataFrame, *, net: Ints, identity: str, at: str) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "id": rows[identity],
            "order_no": rows["order_no"],
            "currency": rows["currency"],
            "amount": np.asarray(net, dtype=np.int64),
            "at": rows[at].dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )
    return frame.assign(what=what)[[*COLUMNS]]


def _lines(items: pd.DataFrame) -> tuple[OpeningLine, ...]:
    return tuple(
        OpeningLine(
            what=str(what),
            currency=str(currency),
            items=len(rows),
            amount=int(rows["amount"].sum()),
            oldest=str(rows["at"].min()),
            newest=str(rows["at"].max()),
        )
        for (what, currency), rows in items.groupby(["what", "currency"])
    )
