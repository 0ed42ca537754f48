from datetime import date, timedelta

from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import Store
from recon.store.nights import runs
from recon.store.schema.columns import LEFT_OUT
from tests.recon.store.conftest import AS_OF, NOW


def test_a_night_that_is_played_again_later_does_not_hide_the_one_after_it(store: Store) -> None:
    """The last night of an account is that of the latest business date, of it the newest run."""
    days = (20, 21, 21, 1)
    with store.writing() as connection:
        for hours, day in enumerate(days):
            request = NightRequest("100042", "100042001", date(2026, 11, day), Mode.DRY_RUN)
            at = NOW + timedelta(hours=hours)
            runs.start(connection, request, run_id=f"r{hours}", as_of=AS_OF, now=at)
            runs.finish(connection, f"r{hours}", status="finished", problem="", now=at)
        (last,) = runs.newest_of_accounts(connection)

    assert (last.run_id, last.business_date) == ("r2", date(2026, 11, 21))


def test_what_stopped_a_night_is_kept_in_whole_words(store: Store) -> None:
    """A long reason ends between two words, and says that something was left out."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    problem = "statement_of_a_bank.xml could not be read; " * 60
    with store.writing() as connection:
        runs.start(connection, request, run_id="r", as_of=AS_OF, now=NOW)
        runs.finish(connection, "r", status="stopped", problem=problem, now=NOW)
        kept = runs.get(connection, "r").problem

    words = kept.removesuffix(LEFT_OUT).split()
    assert kept.endswith(LEFT_OUT)
    assert words == problem.split()[: len(words)]
