from datetime import UTC, datetime

from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.nights import let_go_rows
from recon.store.nights.let_go_rows import LetGo
from recon.store.nights.runs import Run

NOW = datetime(2028, 2, 5, 9, tzinfo=UTC)


def test_a_night_that_was_let_go_is_half_gone_until_its_last_file_is(
    store: Store, run: Run
) -> None:
    """The first link is the word, the second one its end; both stand in the chain."""
    going = LetGo(
        run.run_id, run.merchant_id, run.account_id, run.business_date, "Otto", NOW, 3, 99, "ab"
    )
    with store.writing() as connection:
        assert let_go_rows.let_go_of(connection, run.run_id) is None
        let_go_rows.note_let_go(connection, going, details={"names": ["inputs/orders.parquet"]})
        assert let_go_rows.let_go_of(connection, run.run_id) == going
        assert let_go_rows.half_gone(connection) == [going]
        let_go_rows.note_gone(connection, run.run_id, at=NOW)
        assert let_go_rows.half_gone(connection) == []
        assert let_go_rows.all_let_go(connection) == [going]
        assert history.verify(connection)[1] == ""
    assert "was let go on 2028-02-05 by Otto under retention" in str(going)
