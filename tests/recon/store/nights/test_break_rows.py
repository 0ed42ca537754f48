from dataclasses import replace

from recon.matching.breaks.movements import BreakEnd
from recon.store.database.engine import Store
from recon.store.nights import input_rows, results
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

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
