"""What a night compares, gathered without the rows of its orders: the same as with them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, cast

import pandas as pd
import pytest

from recon.archive.fields import FileSchema
from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import Sources
from recon.matching.sides.settlement_side import pay_outs
from recon.proof.books_bridge import books_of
from recon.proof.night_tables import FRAMES as FRAME_FILES
from recon.proof.night_tables import frames_of_inputs
from recon.steps.compare.inputs import frozen_inputs, previous_of, sources_of
from recon.steps.compare.parted_sources import PartedSources, parted_sources
from recon.steps.compare.sealed_results import begin_compared, end_compared, write_compared
from recon.steps.compare.stretches import rows_of_stretch, stretches
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import entries_of_run, write_books
from recon.steps.ground.night_folder import bind, folder_of
from recon.steps.ground.sealed_night import SealedNight, sealed_night
from recon.steps.night import whole_night as night
from recon.store.nights import runs
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run
from tests.recon.steps.compare.test_parted_inputs import (
    NEW,
    books,
    older,
    opened,
    opened_and_settled,
    plain,
    priced,
    settled,
)
from tests.recon.steps.compare.test_stretches import FRAMES, asked_again, booked, joined
from tests.recon.steps.conftest import UP_TO_COMPARE, Merchant
from tests.recon.steps.files.test_settlement_files import line, send


def repeated(merchant: Merchant) -> None:
    """Entries from before the window that bear the number of one in it, in another currency too."""
    older(merchant)
    at = "2019-01-05T10:00:00Z"
    books(merchant, ("L2", "nobody", "refund", "1.00", at), ("L9", "nobody", "fee", "0.40", at))


def opened_and_joined(merchant: Merchant) -> None:
    """Payments from before the opening date that the merchant's other account knows."""
    joined(merchant)
    opened(merchant)


ARRIVED = [plain, older, settled, priced, repeated, asked_again, joined, booked]
ARRIVED += [opened, opened_and_settled, opened_and_joined]


def compared(run: Run, environment: Environment) -> tuple[Inputs, Sources, PartedSources]:
    """What a run compares, from all rows at once and without them."""
    inputs = frozen_inputs(run, environment=environment)
    rules = environment.settings.rules
    whole = sources_of(run, inputs=inputs, rules=rules, environment=environment)
    parted = parted_sources(run, inputs=inputs, environment=environment)
    assert parted is not None
    return inputs, whole, parted


def newest_run(merchant: Merchant) -> Run:
    """The run that was begun last."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        (run,) = runs.newest_of_accounts(connection)
    return run


@pytest.mark.parametrize("arrived", ARRIVED)
def test_each_small_field_is_that_of_all_rows_at_once(
    merchant: Merchant, arrived: Callable[[Merchant], None]
) -> None:
    """Files, rejects, steps of rows and of money, what is left out: the same words and figures."""
    arrived(merchant)
    merchant.move_money()
    with merchant.environment() as environment:
        _, whole, parted = compared(newest_run(merchant), environment)
    assert bool(parted.parted.before.order_nos) is arrived.__name__.startswith("opened")

    assert_same_but_rows(parted.small, whole)


def assert_same_but_rows(small: Sources, whole: Sources) -> None:
    """Every field is the same, of the frames that are read in stretches whether they are given.

    Of a settlement the pay-outs are there.
    """
    for each in fields(Sources):
        own, expected = getattr(small, each.name), getattr(whole, each.name)
        if each.name == "settlement" and expected is not None:
            paid = expected[pay_outs(expected)].reset_index(drop=True)
            pd.testing.assert_frame_equal(own, paid)
        elif each.name in FRAMES:
            assert (own is None) is (expected is None), each.name
            assert own is None or (len(own), [*own]) == (0, [*expected]), each.name
        elif isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(own, expected)
        else:
            assert own == expected, each.name


@pytest.mark.parametrize("arrived", ARRIVED)
def test_the_step_is_byte_for_byte_that_of_all_rows_at_once(
    merchant: Merchant, arrived: Callable[[Merchant], None]
) -> None:
    """Answers after money, other accounts, a ledger of which a part is compared: same files."""
    arrived(merchant)
    merchant.move_money()
    assert {"manifest.json", "terms.parquet", "steps.parquet"} <= written_alike(merchant)


def test_orders_that_came_since_are_written_anew(merchant: Merchant) -> None:
    """What was sealed before money is not taken for what is compared: the table is made."""
    plain(merchant)
    newer = {"amount": "2.00", "updated_at": "2026-11-20T20:00:00Z"}
    paid = merchant.payments("captured")
    steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        night.walk(UP_TO_COMPARE, run_id, environment=environment, **steps)
        merchant.drop("later.csv", merchant.order(paid[4], **newer), merchant.order(paid[10]))
        night.walk(["ingest"], run_id, environment=environment, **steps)

    assert "orders.parquet" in written_alike(merchant)


def test_tariffs_that_no_file_tells_any_more_are_not_those_of_before(merchant: Merchant) -> None:
    """A newer version of a file leaves brands out: those that were sealed are of other lines."""
    priced(merchant)
    steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        night.walk(UP_TO_COMPARE, run_id, environment=environment, **steps)
        paid = merchant.payments("captured")[7]
        for name in ("S0.csv", "S2.csv"):
            send(merchant, name, line(paid, batch_id=name))
        night.walk(["ingest"], run_id, environment=environment, **steps)

    assert {"settlement.parquet", "tariffs.parquet"} <= written_alike(merchant)
    with merchant.environment() as environment:
        run = newest_run(merchant)
        _, whole, _ = compared(run, environment)
        with environment.store.reading() as connection:
            held = sealed_night(connection, run, environment=environment)
    assert whole.settlement is not None
    assert not whole.settlement["brand"].any()
    assert held.rows("tariffs") == 3


def test_lines_that_an_earlier_release_sealed_are_written_anew(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their file was sorted by batch, and that of tariffs named no order: both stay readable."""
    priced(merchant)
    settlement, tariffs = SCHEMAS["settlement"], SCHEMAS["tariffs"]
    by_batch = ("merchant_id", "account_id", "batch_id", "source", "line")
    unnumbered = tariffs.columns.remove(tariffs.columns.get_field_index("order_no"))
    earlier = {
        "settlement": replace(settlement, key=by_batch, version=1, older=()),
        "tariffs": FileSchema("tariffs", "inputs", unnumbered, ("source", "line")),
    }
    with monkeypatch.context() as patched:
        for name, schema in earlier.items():
            patched.setitem(cast("dict[str, FileSchema]", SCHEMAS), name, schema)
        merchant.move_money()

    assert {"settlement.parquet", "tariffs.parquet"} <= written_alike(merchant)
    with merchant.environment() as environment, environment.store.reading() as connection:
        held = sealed_night(connection, newest_run(merchant), environment=environment)
    none = {name: SCHEMAS[name].columns.empty_table() for name in FRAME_FILES}
    told = {name: held.table(name) for name in ("settlement", "tariffs")}
    lines = frames_of_inputs({**none, **told})["settlement"]
    assert "order_no" not in held.table("tariffs").column_names
    assert sorted(lines.loc[lines["brand"].ne(""), "order_no"])[:1] == [""]
    assert Counter(lines["brand"]) == {"visa": 3, "": len(lines) - 3}


def test_a_run_that_sealed_no_inputs_writes_all_of_them(merchant: Merchant) -> None:
    """There is nothing in whose words they could be told."""
    plain(merchant)
    steps: Any = {"workbooks": merchant.workbooks(), "progress": merchant.told.append}
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        night.walk(["ingest"], run_id, environment=environment, **steps)

    assert {"orders.parquet", "universe.parquet", "ledger.parquet"} <= written_alike(merchant)


def test_books_that_were_read_anew_are_written_anew(merchant: Merchant) -> None:
    """The inputs name those of before, which are whole as well."""
    plain(merchant)
    books(merchant, ("L1", merchant.payments("captured")[0].order_no, "fee", "0.10", NEW))
    merchant.move_money()
    run = newest_run(merchant)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            entries = entries_of_run(connection, run, environment=environment)
        fewer = write_books(run, entries=entries.slice(1), environment=environment)
        with environment.store.writing() as connection:
            bind(connection, run, sealed=[fewer], environment=environment)

    assert "ledger.parquet" in written_alike(merchant)


def test_books_that_are_compared_whole_are_not_made_once_more(merchant: Merchant) -> None:
    """Nor are orders and keys that nothing was added to since they were sealed."""
    plain(merchant)
    merchant.move_money()
    with merchant.environment() as environment:
        _, _, parted = compared(newest_run(merchant), environment)

    assert parted.unchanged == {"orders", "universe", "ledger"}


def written_alike(merchant: Merchant) -> set[str]:
    """The names of the files of the newest run, which are the same from both."""
    run = newest_run(merchant)
    with merchant.environment() as environment:
        whole = files_of(merchant, run, write=lambda: write_whole(run, environment))
        parts = files_of(merchant, run, write=lambda: write_parted(run, environment))
    assert parts == whole
    return {*parts}


def files_of(merchant: Merchant, run: Run, *, write: Callable[[], None]) -> dict[str, bytes]:
    """The files of the step that was written, which is gone afterwards."""
    write()
    (archive,) = merchant.folder.glob("**/archive")
    folder = archive / folder_of(run) / "compared"
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.rename(folder.with_name(f"gone-{len([*folder.parent.iterdir()])}"))
    return content


def write_whole(run: Run, environment: Environment) -> None:
    """As a night does that holds all of its rows."""
    inputs, rules = frozen_inputs(run, environment=environment), environment.settings.rules
    terms: dict[str, Any] = {"inputs": inputs, "rules": rules, "environment": environment}
    write_compared(
        run,
        sources=sources_of(run, **terms),
        previous=previous_of(run, **terms),
        predecessor=inputs.previous_run_id,
        environment=environment,
    )


def write_parted(run: Run, environment: Environment) -> None:
    """As a night does in parts, which reads them before it writes the rest."""
    inputs, whole, parted = compared(run, environment)
    rules = environment.settings.rules
    begun = begin_compared(
        run,
        tables=parted.tables,
        absent=parted.parted.absent,
        predecessor=inputs.previous_run_id,
        environment=environment,
    )
    assert_read(begun.night, whole=whole)
    previous = previous_of(run, inputs=inputs, rules=rules, environment=environment)
    end_compared(
        run,
        begun,
        sources=parted.small,
        previous=previous,
        books=books_of(whole, rules=rules),
        environment=environment,
    )


def assert_read(night: SealedNight, *, whole: Sources) -> None:
    """The night can be read in stretches before its manifest is written."""
    parts = [rows_of_stretch(night, each) for each in stretches(night, orders_per_part=2)]
    for field in FRAMES:
        expected: Any = getattr(whole, field)
        if expected is not None:
            frame = pd.concat([getattr(part, field) for part in parts])
            assert sorted(map(str, frame.to_dict("records"))) == sorted(
                map(str, expected.to_dict("records"))
            )
