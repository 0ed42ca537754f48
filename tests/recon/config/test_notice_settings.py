from typing import Any

import pytest

from recon.config.notice_settings import NOTICES_MAX, STOPPED, Notice, notices_of
from recon.model.errors import ConfigurationError
from recon.model.words import Verdict


def _read(**values: Any) -> Notice:
    tables = {"notices": {"finance": {"address_env": "FINANCE"} | values}}
    return notices_of(tables, accounts={"100042/100042001"})["finance"]


@pytest.mark.parametrize("end", [*(verdict.value for verdict in Verdict), STOPPED])
def test_a_bare_notice_hears_of_every_end_of_every_account(end: str) -> None:
    """Nothing is left out that nobody left out."""
    assert _read().concerns("100042/100042001", ends={end})


def test_a_notice_is_bound_to_its_accounts_and_verdicts() -> None:
    """Merchants hear of their own accounts, and of the ends they asked for."""
    notice = _read(accounts=["100042/*"], verdicts=["NOT PROVEN"])

    assert notice.concerns("100042/100042001", ends={"NOT PROVEN"})
    assert not notice.concerns("100042/100042001", ends={"RECONCILED"})
    assert not notice.concerns("200042/100042001", ends={"NOT PROVEN"})


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"notices": {"finance": {}}}, "address_env and address_file"),
        ({"notices": {"finance": {"address_env": "A", "address_file": "/b"}}}, "name one of"),
        ({"notices": {"finance": {"address_env": "A", "verdict": ["RECONCILED"]}}}, "verdict"),
        ({"notices": {"finance": {"address_env": "A", "verdicts": ["GOOD"]}}}, "verdicts"),
        ({"notices": {"Finance!": {"address_env": "A"}}}, "Finance!"),
        (
            {"notices": {"finance": {"address_env": "A", "accounts": ["100043/*"]}}},
            "fits no account",
        ),
        ({"notice": {}}, "notice"),
        ({"notices": {f"n{i}": {"address_env": "A"} for i in range(NOTICES_MAX + 1)}}, "notices"),
    ],
)
def test_a_notice_that_would_not_hold_is_refused_by_name(
    tables: dict[str, Any], words: str
) -> None:
    """Without an address, with two, with a misspelt key, verdict or table, or too many of them."""
    with pytest.raises(ConfigurationError, match=rf"notices\.toml.*{words}"):
        notices_of(tables, accounts={"100042/100042001"})
