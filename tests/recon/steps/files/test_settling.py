from dataclasses import replace
from datetime import timedelta

from recon.config.file_layouts import FileLayout
from recon.steps.files.arrivals import still_written
from recon.steps.files.ingest import ingest
from recon.store.nights import order_rows

WRITER_ROWS = 3


def settling(merchant):
    """The account waits until nobody has touched a file for five seconds."""
    merchant.configure("merchants.toml", "settle_seconds = 5", instead_of="settle_seconds = 0")


def read(merchant, *, run_id, pause):
    with merchant.begun(run_id) as (run, environment):
        told = ingest(run_id, environment=replace(environment, pause=pause)).sentence
        with environment.store.reading() as connection:
            return told, [source for source, _ in order_rows.files_of_night(connection, run)]


def test_an_order_file_is_read_when_its_writer_has_ended(merchant):
    settling(merchant)
    paid = [merchant.order(payment) for payment in merchant.payments("captured")[: WRITER_ROWS + 1]]
    path, pauses = merchant.drop("orders.csv", paid[0]), []
    whole = merchant.drop("whole.tmp", *paid).read_bytes().splitlines(keepends=True)

    def pause(much):
        pauses.append(much)
        if len(pauses) <= WRITER_ROWS:
            path.write_bytes(b"".join(whole[: 2 + len(pauses)]))

    told, sources = read(merchant, run_id="r1", pause=pause)
    assert "with 4 rows accepted" in told
    assert [source.rows_accepted for source in sources] == [4]


def test_a_file_whose_writer_does_not_end_is_refused_and_heals(merchant):
    settling(merchant)
    path = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))

    def keep_writing(_):
        path.write_bytes(path.read_bytes() + b"\n")

    told, (source,) = read(merchant, run_id="r1", pause=keep_writing)
    assert "orders.csv is still being written: it was waited for over 60 seconds" in told
    assert (source.rows_accepted, source.rows_rejected) == (0, 1)
    told, (source,) = read(merchant, run_id="r2", pause=lambda _: None)
    assert (source.rows_accepted, source.rows_rejected) == (1, 0)


def test_a_file_that_goes_while_it_is_waited_for_is_told(merchant):
    settling(merchant)
    path = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    told, sources = read(merchant, run_id="r1", pause=lambda _: path.unlink(missing_ok=True))
    assert "orders.csv: was gone when it was to be read" in told
    assert sources == []


def test_a_file_with_a_partner_is_not_waited_for(merchant, tmp_path):
    """Its `.done` says that it is complete."""
    settling(merchant)
    path = tmp_path / "orders.csv"
    path.write_text("x")
    with merchant.environment() as environment:
        account = environment.settings.account("100042", account_id="100042001")
        pauses: list[timedelta] = []
        watched = replace(environment, pause=pauses.append)
        for layouts, waits in (((FileLayout(done_file=".done"),), 0), ((), 1)):
            assert not still_written([path], account=account, layouts=layouts, environment=watched)
            assert len(pauses) == waits
