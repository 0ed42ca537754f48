from datetime import UTC, datetime

from recon.config.rules import Rules
from recon.store.database.engine import Store
from recon.store.nights import rules_rows

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_rules_are_kept_once_and_come_back_as_they_were(store: Store) -> None:
    """Every kind of value survives: dates, decimals, tables by currency."""
    rules = Rules.of(
        {
            "calendar": {"holidays": ["2026-12-25"]},
            "rate": {"USD.EUR": {"on": {"2026-11-02": "0.9215"}}, "JPY.EUR": {"rate": "0.0061"}},
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
