"""T14 is broken on purpose: an engine whose result hangs on more than its rows is not proven."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.engine import digest_alone
from recon.matching.frames.sources import Sources
from recon.model.headway import Way
from recon.model.nights import Mode
from recon.model.words import Verdict
from recon.proof.engine import reconcile
from recon.steps.compare.reconcile import turned, turned_round, with_same_digest
from recon.store.nights.runs import Run
from tests.planted import Planted, planted

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
RUN = Run("R", "M", "1", "2026-11-20", Mode.LIVE, "running", "", "", AS_OF, AS_OF, "", "", "")
NO_WAY = Way("", of=0)
Engine = Callable[[Sources], Reconciliation]


@pytest.fixture(scope="module")
def files() -> Planted:
    """Few orders, some of them broken."""
    return planted(size=60, broken=12, seed=5, settled=False)


@pytest.fixture
def engine(files: Planted) -> Engine:
    """The engine under the rules of the files."""
    return partial(reconcile, rules=files.rules, as_of=files.as_of)


def compared(sources: Sources, *, engine: Engine) -> Reconciliation:
    """T14 of an engine: the digest that it is held against is the engine's own."""
    given, again = turned_round(sources, digest=lambda other: engine(other).digest, way=NO_WAY)
    return with_same_digest(engine(given), again=again, run=RUN)


def first_row_lost(engine: Engine) -> Engine:
    """An engine that skips the first payment, wherever it stands."""
    return lambda sources: engine(replace(sources, gateway=sources.gateway.iloc[1:]))


def first_row_wins(engine: Engine) -> Engine:
    """An engine that breaks a tie of two payments of one day by the order of the rows."""

    def chosen(sources: Sources) -> Reconciliation:
        days = sources.gateway["transaction_date"].dt.date
        return engine(replace(sources, gateway=sources.gateway[~days.duplicated()]))

    return chosen


def remembers(engine: Engine) -> Engine:
    """An engine that keeps orders of the run before and drops them from the next."""
    seen: set[str] = set()

    def chosen(sources: Sources) -> Reconciliation:
        orders = sources.orders[~sources.orders["order_no"].isin(seen)]
        seen.update(orders["order_no"].iloc[:1])
        return engine(replace(sources, orders=orders))

    return chosen


def other_moment(engine: Engine) -> Engine:
    """An engine that judges by another moment the second time."""
    moments = iter([AS_OF, datetime(2030, 1, 1, tzinfo=UTC)])
    rules = Rules.of({}, source="none")
    _ = engine
    return lambda sources: reconcile(sources, rules=rules, as_of=next(moments))


def test_the_same_rows_the_other_way_round_give_the_same_result(
    files: Planted, engine: Engine
) -> None:
    """T14 stands among the totals of a night, holds, and leaves the verdict alone."""
    digest = partial(digest_alone, rules=files.rules, as_of=files.as_of)
    given, again = turned_round(files.sources, digest=digest, way=NO_WAY)
    result = with_same_digest(engine(given), again=again, run=RUN)

    (total,) = [one for one in result.control_totals if one.id == "T14"]
    assert (total.left, total.right, total.passed) == (1, 1, True)
    assert result.verdict is engine(files.sources).verdict


def test_the_digest_is_the_same_once_somebody_has_seen_the_matches(
    files: Planted, engine: Engine
) -> None:
    """Of rows that were made and of columns that were made for it alone there is one digest."""
    seen, unseen = engine(files.sources), engine(files.sources)

    assert len(seen.matches) > len(seen.breaks) > 0
    assert seen.digest == unseen.digest


@pytest.mark.parametrize("spoil", [first_row_lost, first_row_wins, remembers, other_moment])
def test_an_engine_that_gives_two_results_is_not_proven(
    files: Planted, engine: Engine, spoil: Callable[[Engine], Engine]
) -> None:
    """T14 fails for an engine that hangs on row order, on memory or on the time of its call."""
    result = compared(files.sources, engine=spoil(engine))

    assert [one.id for one in result.control_totals if not one.passed] == ["T14"]
    assert result.verdict is Verdict.NOT_PROVEN


def test_every_frame_is_turned(files: Planted) -> None:
    """A source that was compared in one order only would prove nothing of its rows."""
    other, sources = turned(files.sources), files.sources

    assert sources.ledger is not None
    assert other.ledger is not None
    assert other.orders["order_no"].tolist() == sources.orders["order_no"].tolist()[::-1]
    assert other.gateway["order_no"].tolist() == sources.gateway["order_no"].tolist()[::-1]
    assert other.ledger["entry_id"].tolist() == sources.ledger["entry_id"].tolist()[::-1]


def test_sources_are_let_go_while_their_rows_stand_the_other_way_round(files: Planted) -> None:
    """The digest is made of the one order alone, and they come back as they were given."""
    kept: list[weakref.ref[pd.DataFrame]] = []

    def given_once() -> Sources:
        frame = files.sources.orders.copy()
        kept.append(weakref.ref(frame))
        return replace(files.sources, orders=frame)

    def digest(other: Sources) -> str:
        numbers = other.orders["order_no"].tolist()
        assert numbers == files.sources.orders["order_no"].tolist()[::-1]
        gc.collect()
        assert kept[0]() is None
        return "the other side"

    back, again = turned_round(given_once(), digest=digest, way=NO_WAY)
    assert again == "the other side"
    pd.testing.assert_frame_equal(back.orders, files.sources.orders)
