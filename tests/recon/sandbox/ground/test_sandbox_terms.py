import tomllib
from pathlib import Path

import pytest

from recon.config.rules import Rules
from recon.config.settings import bundled_config_dir
from recon.model.errors import ConfigurationError
from recon.model.words import GatewayState
from recon.sandbox.ground.clock import fourteen_digits, iso
from recon.sandbox.ground.sandbox_terms import load_terms

WITHOUT_CODE = {GatewayState.NONE, GatewayState.UNMAPPED, GatewayState.UNVERIFIED}


def test_every_state_of_a_payment_has_one_code() -> None:
    """The table maps both ways."""
    terms = load_terms()
    assert set(terms.code_of) == set(GatewayState) - WITHOUT_CODE
    assert len(terms.code_of) == len(terms.payment_status)


def test_the_code_tables_are_rules_of_a_reconciliation() -> None:
    """[payment_status] and [query_result] can be laid over the rules as they stand."""
    tables = tomllib.loads((bundled_config_dir() / "sandbox.toml").read_text())
    names = ("payment_status", "query_result")
    rules = Rules.of({name: tables[name] for name in names}, source="sandbox.toml")
    assert rules.state_of("4000") is GatewayState.PARTIALLY_REFUNDED
    assert rules.answer_of("2") == "not_found"


def test_a_mistake_in_the_terms_is_named(tmp_path: Path) -> None:
    """The key that is wrong stands in the message."""
    (tmp_path / "sandbox.toml").write_text("[windows]\nrefund_days = 0\n")
    with pytest.raises(ConfigurationError, match=r"sandbox.toml: windows.refund_days"):
        load_terms(config_dir=tmp_path)


def test_instants_are_written_in_both_forms() -> None:
    """The ledger writes ISO 8601, the gateway 14 digits, both UTC."""
    assert iso(0) == "1970-01-01T00:00:00Z"
    assert fourteen_digits(86_399) == "19700101235959"
