"""What the form that closes a month does, and what it must not."""

from typing import Any

import pytest

from flows.close import Closing, close
from flows.prefect_server import PrefectServer
from recon.store.nights.sign_off_rows import ROLES
from tests.flows.flow_in_process import prefect_of


def test_the_form_starts_by_only_preparing() -> None:
    """Whoever just submits the form has signed nothing, and Prefect never repeats a signature."""
    assert close.retries == 0
    assert close.persist_result is False
    assert close.parameters.properties["act"]["default"] == "prepare"
    assert tuple(act.value for act in Closing)[1:3] == ROLES


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_nobody_signs_without_a_name_or_a_month_that_is_closed(server: PrefectServer) -> None:
    """The sentences are those of the desk; nothing is closed by them."""
    own = {"merchant_id": "100042", "account_id": "100042001", "month": "2026-11"}
    with prefect_of(server):
        unnamed: Any = close(Closing.REVIEWER, return_state=True)
        open_still: Any = close(
            Closing.REOPEN, **own, name="anna", reason="a corrected file", return_state=True
        )

    assert "name the merchant, the account and who you are" in unnamed.message
    assert "anna proves to be anna" in open_still.message
