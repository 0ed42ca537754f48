from pathlib import Path
from typing import Any

import pytest

from recon.archive.step_folder import find_sealed, step_problems
from recon.archive.storage import LocalStorage
from recon.model.errors import ArchiveError
from recon.model.nights import Mode
from recon.steps.ground.night_folder import STEPS, links
from recon.store.database import history
from recon.store.nights import runs
from recon.store.nights.runs import Run
from tests.recon.steps.conftest import Merchant


def events_of_night(merchant: Merchant) -> tuple[Run, list[dict[str, Any]]]:
    """The newest run and the whole history, oldest link first."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        (newest,) = runs.newest_of_accounts(connection)
        entities = [newest.run_id, *_batches(connection)]
        events = [one for each in entities for one in history.links_of(connection, [each])]
        return newest, sorted(events, key=lambda one: one.sequence)


def _batches(connection: Any) -> list[str]:
    found = connection.exec_driver_sql(
        "SELECT DISTINCT entity_id FROM history WHERE entity = 'batch'"
    )
    return [row[0] for row in found]


def archive_of(merchant: Merchant) -> LocalStorage:
    """The archive of a merchant's nights."""
    beside = Path(merchant.variables["RECON_DATABASE_URL"].removeprefix("sqlite:///")).parent
    is_file = merchant.variables["RECON_DATABASE_URL"].startswith("sqlite:")
    return LocalStorage((beside if is_file else merchant.folder / "reports") / "archive")


def capture(merchant: Merchant) -> None:
    """One order that asks for its capture."""
    payment = merchant.payments("authorised")[0]
    asked = {"action": "capture", "action_amount": payment.amount, "request_id": "R1"}
    merchant.drop("orders.csv", merchant.order(payment, **asked))


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.DRY_RUN])
def test_what_a_night_read_is_bound_before_the_first_claim_and_all_of_it_by_its_end(
    mode: Mode, merchant: Merchant
) -> None:
    """The links stand in the order of the night, and each binds a folder that is whole."""
    capture(merchant)
    merchant.night(mode=mode)

    run, events = events_of_night(merchant)
    names = [event.data["step"] if event.event == "sealed" else event.event for event in events]
    wanted = [
        "started",
        "answers-1",
        "inputs",
        "compared",
        "results",
        "proof",
        "reported",
        "finished",
    ]
    assert [name for name in names if name in wanted] == wanted
    assert (names.index("inputs") < names.index("claimed")) if mode is Mode.LIVE else True
    assert ("claimed" in names) is (mode is Mode.LIVE)
    storage = archive_of(merchant)
    with merchant.environment() as environment, environment.store.reading() as connection:
        bound = links(connection, run.run_id)
    for link in bound:
        night = link.folder.rpartition("/")[0]
        sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
        assert sealed is not None
        assert step_problems(storage, sealed) == []
        assert sealed.manifest.about.run_id == run.run_id
    assert sealed is not None
    assert sealed.manifest.about.after == {
        link.step: link.sha256 for link in bound if link.step in STEPS[:3]
    }


def test_an_archive_that_is_gone_before_money_stops_the_night_and_nothing_is_sent(
    merchant: Merchant,
) -> None:
    """The sentence says so and what to do; with the archive back the night sends what it was to."""
    capture(merchant)
    root = Path(archive_of(merchant).shown)
    root.write_text("no folder")

    with pytest.raises(ArchiveError, match=r"nothing was sent: make the archive writable.*says: "):
        merchant.night()
    assert merchant.effects() == []
    assert merchant.instruction_states() == {}

    root.unlink()
    merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["capture"]
