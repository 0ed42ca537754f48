from datetime import UTC, date, datetime, timedelta

import pytest

from recon.store.database.engine import Store
from recon.store.nights import sign_off_rows
from recon.store.nights.runs import Run
from recon.store.people.approval_rows import PersonsWord

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_signature_binds_the_workbooks_hash(store: Store, run: Run) -> None:
    """Name, role and hash come back as they were given."""
    with store.writing() as connection:
        word = PersonsWord("Anna", authenticated=True, at=NOW)
        sign_off_rows.save(connection, run.run_id, role="reviewer", word=word, workbook_sha256="ab")
        found = sign_off_rows.signatures(connection, run.run_id)

    assert (found["reviewer"].by, found["reviewer"].workbook_sha256) == ("Anna", "ab")


@pytest.mark.usefixtures("run")
def test_only_a_later_finished_run_replaces(store: Store) -> None:
    """A run that is still working replaces nothing."""
    with store.reading() as connection:
        (live,) = sign_off_rows.live_runs(connection, first=date.min, last=date.max)
        early = live.started_at - timedelta(hours=1)

        assert sign_off_rows.replaced_by(connection, live, since=early) == ""
