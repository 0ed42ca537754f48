"""Books that have what arrives at the bank, in live nights: one break until it is booked."""

from typing import Any

from recon.steps.care.verify_folder import sql_problems
from recon.steps.compare.rebuild import rebuild_night
from tests.recon.steps.files.test_bank_nights import banking, entry, newest, sale, sealed, tell
from tests.recon.steps.files.test_settlement_files import broken, passed, stored

__all__ = ["banking"]


def test_what_arrived_is_a_break_until_it_is_booked(banking: Any) -> None:
    """It waits for two business days, then it is one break with one id, then it is resolved."""
    rules = banking.folder / "config" / "rules.toml"
    rules.write_text(rules.read_text() + "\n[ledger]\nbank = true\n")
    payment = sale(banking)
    ours = entry(payment.amount, "BATCH-0001", on="2026-11-20")
    tell(banking, 1, ours, day="2026-11-20", opening="0.00", closing=payment.amount)
    banking.night()
    assert [row["state"] for row in sealed(banking)["banked"]] == ["PENDING"]
    assert "BANK_NOT_BOOKED" not in broken(banking).values()

    balance = payment.amount
    for number, day in ((2, "2026-11-23"), (3, "2026-11-24"), (4, "2026-11-25")):
        tell(banking, number, day=day, opening=balance, closing=balance)
    banking.wait(hours=24 * 5)
    banking.night(date="2026-11-25", skip="nobody was there")
    breaks = stored(banking).breaks
    mine = breaks[breaks["code"].eq("BANK_NOT_BOOKED")]
    assert mine["effect_ledger"].tolist() == [int(payment.amount.replace(".", ""))]
    for number in ("T7", "T19", "T14", "T13"):
        assert set(passed(banking, number)) == {True}, number
    run = newest(banking)
    with banking.environment() as environment:
        assert sql_problems(run, environment=environment) == []
        assert rebuild_night(run.run_id, out=None, environment=environment).same

    with (banking.folder / "ledger.csv").open("a") as ledger:
        ledger.write(
            f"K-1,100042,100042001,BATCH-0001,bank,EUR,{payment.amount},2026-11-26T12:00:00Z\n"
        )
    tell(banking, 5, day="2026-11-26", opening=balance, closing=balance)
    banking.wait(hours=24)
    banking.night(date="2026-11-26")
    moved = stored(banking).movements
    assert moved[moved["break_id"].isin(mine["break_id"])]["movement"].tolist() == ["resolved"]
    assert [row["state"] for row in sealed(banking)["banked"]] == ["MATCHED"]
    assert set(passed(banking, "T7")) == {True}
