import pyarrow.parquet as pq

from recon.archive.step_folder import sealed_step
from recon.model.nights import Mode
from tests.recon.steps.care.test_verify_folder import run_folder
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.night.test_sealed_proof import entries
from tests.recon.steps.night.test_sealed_settle import archive_of, capture


def compared_of(merchant: Merchant) -> dict[str, str]:
    """What the newest night compared in the place of what was sealed before money."""
    folder = run_folder(merchant)
    storage = archive_of(merchant)
    sealed = sealed_step(storage, folder=f"{folder.relative_to(storage.shown)}/compared")
    assert sealed is not None
    return dict(sealed.manifest.about.compared)


def test_what_money_changed_stands_beside_what_was_known_before_it(merchant: Merchant) -> None:
    """The answer before the capture stays sealed; the one after it is what was compared."""
    capture(merchant)
    merchant.night()

    folder, moved = run_folder(merchant), compared_of(merchant)
    assert moved == {
        f"inputs/{name}.parquet": f"compared/{name}.parquet" for name in ("answers", "instructions")
    }
    states = [
        pq.read_table(folder / name)["state"].to_pylist()
        for name in ("inputs/instructions.parquet", "compared/instructions.parquet")
    ]
    assert states == [["approved"], ["confirmed"]]
    assert entries(folder)["inputs/orders.parquet"].rows == 1


def test_a_night_that_moved_nothing_writes_nothing_twice(merchant: Merchant) -> None:
    """What was compared is what was sealed."""
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    assert compared_of(merchant) == {}
