"""What the sign-off form offers and shows."""

from datetime import date

import pytest

from flows.sign_off import Signing, markdown_of, sign_off
from recon.steps.people.sign_off import Night
from recon.store.nights.sign_off_rows import ROLES


def test_the_sign_off_form_starts_by_only_looking() -> None:
    """Whoever just submits the form has signed nothing, and Prefect never repeats a signature."""
    assert sign_off.retries == 0
    assert sign_off.persist_result is False
    assert sign_off.parameters.properties["sign_as"]["default"] == "show"
    assert tuple(one.value for one in Signing)[1:3] == ROLES


@pytest.mark.parametrize("void", ["", "run r|2 replaced it"])
def test_an_unsigned_night_is_called_not_signed(void: str) -> None:
    """Blank would be read as done."""
    night = Night("1", "2", date(2026, 11, 20), "r1", "RECONCILED", (), void, 3)
    last = markdown_of([night], "One night.").splitlines()[-1]

    assert "| not signed |" in last
    assert last.replace(r"\|", "").count("|") == 8
