from dataclasses import replace

from recon.matching.breaks.movements import BreakEnd
from recon.matching.frames.sources import AgreedWriteOffs, Exported
from recon.store.database.engine import Store
from recon.store.nights import input_rows, results
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

INPUTS = Inputs(
    rules_digest="a" * 64,
    previous_run_id="before",
    last_file=3,
    last_observation=70,
    product_version="1",
    siblings=("100042002",),
    exported=(Exported("b1", "EUR", 1, booked=True),),
    agreed_write_offs=AgreedWriteOffs({"b2": ("EUR", 200)}, {"L1": ("EUR", 5)}),
    moved_by_rules=("Rules changed.",),
)


def test_what_a_run_compared_comes_back_and_a_repeat_takes_its_place(
    store: Store, run: Run
) -> None:
    """A step that is repeated leaves one answer, the last."""
    with store.writing() as connection:
        input_rows.save(connection, run.run_id, inputs=INPUTS)
        first = input_rows.load(connection, run.run_id)
        input_rows.save(connection, run.run_id, inputs=replace(INPUTS, last_file=4))
        second = input_rows.load(connection, run.run_id)
        missing = input_rows.load(connection, "another")

    assert first == INPUTS
    assert second == replace(INPUTS, last_file=4)
    assert missing is None


NOTHING = Inputs("", "", 0, 0, 0, "")


def test_ends_are_those_of_the_nights_that_led_here(store: Store, run: Run) -> None:
    """A run that replaced one of these nights is not among them; the newest end counts."""
    with store.writing() as connection:
        results.save_ends(connection, run.run_id, ends=[BreakEnd("b1", "unverified", "2026-11-18")])
        results.save_ends(
            connection,
            run.run_id,
            ends=[
                BreakEnd("b1", "resolved", "2026-11-18"),
                BreakEnd("b2", "not seen", "2026-11-17"),
            ],
        )
        input_rows.save(connection, run.run_id, inputs=NOTHING)
        elsewhere = replace(run, run_id="r2")
        input_rows.save(connection, "r2", inputs=replace(NOTHING, previous_run_id="r0"))
        ended = results.ends_until(connection, run)
        not_ours = results.ends_until(connection, elsewhere)

    assert ended == {
        "b1": BreakEnd("b1", "resolved", "2026-11-18"),
        "b2": BreakEnd("b2", "not seen", "2026-11-17"),
    }
    assert not_ours == {}
