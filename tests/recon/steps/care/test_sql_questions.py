"""One SELECT is asked over the folders of all nights."""

import pytest

from recon.model.errors import UsageError
from recon.steps.care.sql_questions import answer
from tests.recon.steps.care.test_verify_folder import run_folder
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.night.test_sealed_settle import capture


def test_every_night_answers_with_its_files(merchant: Merchant) -> None:
    """Rows come from the sealed files of the night, with its run, date and verdict beside them."""
    capture(merchant)
    merchant.night()
    run_id = run_folder(merchant).name
    counted = (
        "SELECT n.run_id, n.verdict, n.is_newest, count(DISTINCT o.order_no) AS orders, "
        "count(DISTINCT d.what) AS decisions FROM nights n JOIN orders o USING (run_id) "
        "LEFT JOIN decisions d USING (run_id) GROUP BY ALL"
    )
    with merchant.environment() as environment:
        (row,) = answer(counted, environment=environment).rows.to_pylist()
        assert row["run_id"] == run_id
        assert row["verdict"]
        assert row["is_newest"]
        assert row["orders"] == 1
        assert row["decisions"] > 0
        with pytest.raises(UsageError):
            answer("DROP VIEW breaks", environment=environment)


def test_no_night_is_an_answer_without_rows(merchant: Merchant) -> None:
    """Before the first night is sealed a question has no row."""
    with merchant.environment() as environment:
        assert answer("SELECT * FROM breaks", environment=environment).rows.num_rows == 0
