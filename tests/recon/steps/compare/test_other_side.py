"""T14 is broken on purpose: an engine whose result hangs on more than its rows is not proven.

And the other side that another process makes of the night's files is that of this one.
"""

import gc
import json
import pickle
import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.archive.local_storage import LocalStorage
from recon.archive.manifest import About
from recon.archive.step_folder import write_step
from recon.config.cluster import InProcess
from recon.config.night_archive import ArchiveSettings
from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.engine import digest_alone
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ArchiveBrokenError
from recon.model.headway import Way
from recon.model.nights import Mode
from recon.model.words import Verdict
from recon.proof.compared_tables import compared_tables
from recon.proof.engine import reconcile
from recon.proof.night_tables import absent_of, input_tables
from recon.steps.compare import other_side
from recon.steps.compare import reconcile as reconcile_step
from recon.steps.compare.handed_night import HandedNight
from recon.steps.compare.other_side import (
    is_made_beside,
    other_digest,
    turned,
    turned_round,
    with_same_digest,
)
from recon.steps.ground.night_folder import COMPARED, INPUTS, rows_of
from recon.store.nights import results, runs
from recon.store.nights.runs import Run
from recon.workers.process_pool import ProcessPool
from tests.planted import Planted, planted
from tests.recon.steps.care.test_verify_folder import run_folder
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.night.test_sealed_settle import capture

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
    return with_same_digest(engine(given), again=lambda: again, run=RUN)


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
    result = with_same_digest(engine(given), again=lambda: again, run=RUN)

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


def written(
    folder: Path, *, sources: Sources, rules: Rules, previous: Previous | None = None
) -> HandedNight:
    """Sources as a night writes them, and what another process is told of them."""
    storage = LocalStorage(folder)
    empty = {"predecessor": "", "rules_digest": rules.digest, "product_version": "0"}
    small = compared_tables(sources, rules=rules, previous=previous, books={})
    steps = []
    for step, tables in ((INPUTS, input_tables(sources)), (COMPARED, small.items())):
        about = About(
            run_id="R",
            merchant_id="M",
            account_id="1",
            business_date="2026-11-20",
            mode="live",
            step=step,
            history_before="",
            absent=absent_of(sources),
            **empty,
        )
        steps.append(write_step(storage, night="nights/R", about=about, parts=rows_of(tables)))
    places = tuple((sealed.folder, sealed.sha256) for sealed in steps)
    archive = ArchiveSettings(path=str(folder))
    return HandedNight("R", AS_OF, json.dumps(rules.document), archive, places)


@given(
    seed=st.integers(min_value=0, max_value=10_000),
    size=st.integers(min_value=1, max_value=60),
    settled=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_the_files_of_any_night_give_the_digest_of_its_rows(
    seed: int, size: int, *, settled: bool
) -> None:
    """Read by another process, in whatever order the rows were, there is one digest."""
    night = planted(size=size, broken=size // 3, seed=seed, settled=settled)
    mixed = {
        name: frame.sample(frac=1, random_state=seed).reset_index(drop=True)
        for name in ("orders", "gateway", "ledger")
        if (frame := getattr(night.sources, name)) is not None
    }
    with TemporaryDirectory() as folder:
        part = written(Path(folder), sources=replace(night.sources, **mixed), rules=night.rules)
        again = other_digest(replace(part, as_of=night.as_of))

    assert again == digest_alone(night.sources, rules=night.rules, as_of=night.as_of)


def beside(merchant: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the nights of a merchant have their other side made beside them, however small."""
    (Path(merchant.variables["RECON_CONFIG_DIR"]) / "cluster.toml").write_text(
        "compared_at_once = 2\n"
    )
    monkeypatch.setattr(other_side, "BESIDE_FROM_ORDERS", 1)


def same_digest(merchant: Merchant) -> tuple[str, bool]:
    """The digest of the last night, and whether its other side gave it, too."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run_id = run_folder(merchant).name
        totals = results.load_totals(connection, run_id)
        (passed,) = [one.passed for one in totals if one.name.startswith("the same inputs again")]
        return runs.digests_of(connection, run_id)["result_digest"], passed


@pytest.mark.process
def test_a_night_compared_beside_comes_to_the_same(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same night with and without a second process: one verdict, one digest, T14 passed."""
    seen: list[str] = []
    counted = other_side.other_digest

    def here(part: HandedNight) -> str:
        seen.append(part.run_id)
        return counted(part)

    monkeypatch.setattr(other_side, "other_digest", here)
    capture(merchant)
    with monkeypatch.context() as only:
        only.setattr(ProcessPool, "meanwhile", InProcess.meanwhile)
        beside(merchant, only)
        merchant.night(mode=Mode.DRY_RUN)
    first = same_digest(merchant)
    assert seen == [run_folder(merchant).name]
    monkeypatch.setattr(other_side, "other_digest", counted)
    shutil.rmtree(run_folder(merchant))
    beside(merchant, monkeypatch)
    merchant.night(mode=Mode.DRY_RUN)
    again = same_digest(merchant)

    assert first == again
    assert again[1]


@pytest.mark.process
def test_files_that_say_something_else_than_was_compared_are_not_proven(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process reads what lies on the disk: an answer that was not written fails T14."""
    capture(merchant)
    beside(merchant, monkeypatch)
    write = reconcile_step.write_compared

    def without_the_first(run: Run, *, sources: Sources, **named: Any) -> Any:
        lost = replace(sources, gateway=sources.gateway.iloc[1:].reset_index(drop=True))
        return write(run, sources=lost, **named)

    monkeypatch.setattr(reconcile_step, "write_compared", without_the_first)
    assert merchant.night(mode=Mode.DRY_RUN) is Verdict.NOT_PROVEN
    assert not same_digest(merchant)[1]


def test_another_process_compares_the_rows_in_another_order(
    tmp_path: Path, files: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie there by their key: read as they lie, they would prove nothing of their order."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    monkeypatch.setattr(
        other_side, "digest_alone", lambda given, **_: ",".join(given.orders["order_no"])
    )

    numbers = other_digest(part).split(",")

    assert numbers == sorted(numbers, reverse=True)
    assert {*numbers} == {*files.sources.orders["order_no"]}


def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path: Path, files: Planted) -> None:
    """Nothing is compared of it."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    file = tmp_path / "nights" / "R" / INPUTS / "orders.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(ArchiveBrokenError, match=r"inputs/orders\.parquet has \d+ bytes"):
        other_digest(part)


def test_a_step_that_was_written_anew_meanwhile_is_named(tmp_path: Path, files: Planted) -> None:
    """Its manifest is not the one that the part was handed out with."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    ((folder, _), compared) = part.steps

    with pytest.raises(ArchiveBrokenError, match=r"nights/R/inputs .*is not what the night wrote"):
        other_digest(replace(part, steps=((folder, "0" * 64), compared)))


def test_few_orders_are_compared_here(merchant: Merchant) -> None:
    """A second process takes a second to begin: of a small night nobody asks for one."""
    (Path(merchant.variables["RECON_CONFIG_DIR"]) / "cluster.toml").write_text(
        "compared_at_once = 2\n"
    )
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, run_folder(merchant).name)
        assert environment.workers.helps
        assert not is_made_beside(run, environment=environment)


def test_another_process_is_told_no_secret(tmp_path: Path, files: Planted) -> None:
    """A place, rules and hashes: what travels to a worker has no row and no key."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    archive = ArchiveSettings(path="s3://books/n", access_key_env="ID", secret_key_env="SECRET")

    told = pickle.dumps(replace(part, archive=archive))

    assert b"SECRET" in told
    assert files.sources.orders["order_no"].iloc[0].encode() not in told
