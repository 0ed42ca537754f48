from collections.abc import Callable

import pytest

from recon.model.errors import ArchiveBrokenError
from recon.steps.care.sql_questions import answer
from recon.steps.ground.night_folder import SealedNight, sealed_night
from recon.store.nights import runs
from tests.recon.steps.conftest import Merchant

pytestmark = pytest.mark.xdist_group("a night that captured")


def _opened(merchant: Merchant) -> SealedNight:
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, runs.finished(connection)[-1].run_id)
        return sealed_night(connection, run, environment=environment)


def captured(merchant: Merchant) -> None:
    """A night that captures, so that answers and instructions change after money."""
    rows = [merchant.order(one, action="capture") for one in merchant.payments("authorised")[:2]]
    merchant.drop("orders.csv", *rows)
    merchant.night()


@pytest.fixture
def ended(begun: Callable[..., Merchant]) -> Merchant:
    """A merchant after that night, which is played once."""
    return begun(captured)


def test_what_was_compared_stands_for_what_was_sealed_before_money(ended: Merchant) -> None:
    """The answers after the captures are read, the orders as they were sealed before."""
    night = _opened(ended)

    assert night.moved["inputs/answers.parquet"] == "compared/answers.parquet"
    assert "inputs/orders.parquet" not in night.moved
    assert night.content("answers")[1].endswith("/compared/answers.parquet")
    assert night.content("orders")[1].endswith("/inputs/orders.parquet")
    assert night.rows("orders") == night.table("orders").num_rows == 2


def test_the_answers_after_money_are_those_that_are_asked_of_in_sql(ended: Merchant) -> None:
    """Of each order the newest answer, once, in the one file of what was compared."""
    night = _opened(ended)

    rows = night.table("answers").to_pylist()
    assert len(rows) == 2
    assert len({row["payment_status"] for row in rows}) == 1
    assert [row["source"] for row in rows] == ["gateway"] * 2
    with ended.environment() as environment:
        asked = answer("SELECT order_no, payment_status FROM answers", environment=environment)
    told = [(row["order_no"], row["payment_status"]) for row in rows]
    assert sorted(map(tuple, (row.values() for row in asked.rows.to_pylist()))) == told


def test_a_step_that_is_gone_is_named_with_the_way_back(ended: Merchant) -> None:
    """A folder that was moved away is missed by its name, and the other steps are read."""
    (folder,) = ended.folder.glob("**/archive/nights/*/*/*/*/results")
    folder.rename(folder.with_name("elsewhere"))
    night = _opened(ended)

    assert night.has("orders")
    with pytest.raises(ArchiveBrokenError, match="the step results of run"):
        night.table("breaks")


def test_a_table_that_the_night_did_not_seal_is_not_there(ended: Merchant) -> None:
    """A newer version's table of an older night is told from one that is lost."""
    night = _opened(ended)

    assert not night.has("statements")
    assert night.rows("statements") == 0
