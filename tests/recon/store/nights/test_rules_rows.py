from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from recon.config.rules import Rules
from recon.model.errors import StoreError
from recon.store.database.engine import Store
from recon.store.nights import rules_rows
from recon.store.schema import rules_version

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_rules_are_kept_once_and_come_back_as_they_were(store: Store) -> None:
    """Every kind of value survives: dates, decimals, tables by currency."""
    rules = Rules.of(
        {
            "calendar": {"holidays": ["2026-12-25"]},
            "rate": {
                "USD.EUR": {"on": {"2026-11-02": "0.9215"}},
                "JPY.EUR": {"on": {"2026-11-02": "0.0061"}},
            },
            "tolerance": {"EUR": {"basis_points": 5}},
        },
        source="x",
    )
    with store.writing() as connection:
        rules_rows.keep(connection, rules, at=NOW)
        rules_rows.keep(connection, rules, at=NOW)
        found = rules_rows.load(connection, rules.digest)
        missing = rules_rows.load(connection, "0" * 64)

    assert found == rules
    assert found is not None
    assert found.digest == rules.digest
    assert missing is None


def test_rules_that_are_not_those_of_their_digest_judge_nothing(store: Store) -> None:
    """Whoever reads them is told, and not given other rules under the old digest."""
    rules = Rules.of({"tolerance": {"EUR": {"basis_points": 5}}}, source="x")
    with store.writing() as connection:
        rules_rows.keep(connection, rules, at=NOW)
        connection.execute(update(rules_version).values(document='{"tolerance": {}}'))
        with pytest.raises(StoreError, match=f"the rules {rules.digest} say something else"):
            rules_rows.load(connection, rules.digest)
