from dataclasses import dataclass

from sqlalchemy import select

from recon.store.schema import instruction
from recon.store.schema.columns import in_account, in_accounts


@dataclass(frozen=True)
class Night:
    """Whatever bears both numbers."""

    merchant_id: str
    account_id: str


def test_a_condition_names_merchant_and_account() -> None:
    """No statement sees another account, whoever says which it is; of no account it sees none."""
    conditions = (in_account(instruction, Night("m1", "a1")), in_account(instruction, ("m1", "a1")))
    for condition in (*conditions, [in_accounts(instruction, [("m1", "a1")])]):
        told = select(instruction.c.order_no).where(*condition).compile()

        assert "merchant_id = :" in str(told)
        assert "account_id = :" in str(told)
        assert sorted(told.params.values()) == ["a1", "m1"]
    assert str(in_accounts(instruction, [])) == "false"
