from dataclasses import replace

from recon.matching.frames.sources import AgreedWriteOffs, Exported
from recon.store.database.engine import Store
from recon.store.nights import input_rows
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
