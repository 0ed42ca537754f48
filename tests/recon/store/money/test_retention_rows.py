from datetime import UTC, date, datetime, timedelta

from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import Store
from recon.store.money.retention_rows import OldReplies, old_replies, replaced_workbooks
from recon.store.nights import runs

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)


def test_only_a_run_of_the_same_mode_replaces_a_workbook(store: Store) -> None:
    """A dry run after the live one leaves the night's own workbook in its place."""
    modes = {"first": Mode.LIVE, "second": Mode.LIVE, "dry": Mode.DRY_RUN}
    with store.writing() as connection:
        for hours, (run_id, mode) in enumerate(modes.items()):
            request = NightRequest("m", "a", date(2026, 11, 20), mode)
            at = NOW + timedelta(hours=hours)
            runs.start(connection, request, run_id=run_id, as_of=NOW, now=at)
            runs.note_result(connection, run_id, values={"workbook": f"/r/{run_id}.xlsx"})
            runs.finish(connection, run_id, status="finished", problem="", now=at)
        found = replaced_workbooks(connection)

    assert found == {"/r/first.xlsx": NOW}


def test_a_database_without_batches_has_no_old_replies(store: Store) -> None:
    """Nothing is a number too."""
    with store.reading() as connection:
        assert old_replies(connection, before=NOW) == OldReplies(0, 0, None)
