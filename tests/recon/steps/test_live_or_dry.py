"""A gateway on this machine, asked with a key of its own, as one behind a tunnel would be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recon import cli
from recon.instructions.planning import TWO_PEOPLE
from recon.sandbox import SandboxOptions
from tests.recon.steps.conftest import ACCOUNT, BUSINESS_DATE, MERCHANT, opened

KEY = "a key of real money"


@pytest.fixture
def real(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Its merchant, with a limit for euros alone, and a file that asks for two captures."""
    options = SandboxOptions(orders=300, sign_key=KEY)
    with opened(tmp_path, options=options, database_url=database_url) as merchant:
        merchant.variables["RECON_SIGN_KEY"] = KEY
        place = {"RECON_MERCHANT": MERCHANT, "RECON_ACCOUNT": ACCOUNT}
        for name, value in (merchant.variables | place).items():
            monkeypatch.setenv(name, value)
        (tmp_path / "config" / "limits.toml").write_text("[limits.EUR]\nnight = 1000000\n")
        wanted = {one.currency: one for one in merchant.payments("authorised")}
        rows = [merchant.order(wanted[code], action="capture") for code in ("EUR", "GBP")]
        merchant.drop("orders.csv", *rows)
        yield merchant


def test_real_money_moves_only_live_and_within_a_limit(
    real: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a word each command is a dry run and says so; live, what has no limit waits."""
    part = ["nightly", "--business-date", BUSINESS_DATE, "--only"]
    assert cli.main([*part, "ingest"]) == 0
    assert [cli.main([*part, only]) for only in ("settle", "payouts")] == [0, 0]
    dry = capsys.readouterr()
    assert dry.out.count("A dry run, for the gateway is not the sandbox") == 2
    assert "would send" in dry.err
    assert real.effects() == []

    assert cli.main([*part, "settle", "--live"]) == 0

    assert [(one["operation"], one["currency"]) for one in real.effects()] == [("capture", "EUR")]
    with real.environment() as environment, environment.store.reading() as connection:
        holds = connection.exec_driver_sql("SELECT hold FROM instruction WHERE state = 'planned'")
        assert [*holds.scalars()] == [f"{TWO_PEOPLE}: limits.toml sets no limit for GBP"]


def test_real_money_asked_for_by_hand_waits_for_another_person(
    real: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody plays with it under any name; who is declared asks, and somebody else approves."""
    payment = next(one for one in real.payments("captured") if one.currency == "EUR")
    refund = [
        "gateway",
        "move",
        "refund",
        payment.order_no,
        "--amount",
        payment.amount,
        "--as",
        "anna",
    ]
    assert cli.main(refund) == 2
    (real.folder / "config" / "approvers.toml").write_text('[approvers.anna]\nname = "Anna Berg"\n')

    assert cli.main(refund) == 3
    assert "another person approves it" in capsys.readouterr().out
    assert real.effects() == []
