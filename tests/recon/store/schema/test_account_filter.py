from dataclasses import dataclass

from sqlalchemy import select

from recon.store.schema import instruction
from recon.store.schema.columns import account_values, in_account, values_of


@dataclass(frozen=True)
class Night:
    """Whatever bears both numbers."""

    merchant_id: str
    account_id: str


def test_a_condition_and_its_values_name_merchant_and_account() -> None:
    """Every parameter of the condition has its value: no statement sees another account."""
    statement = select(instruction.c.order_no).where(*in_account(instruction))
    values = account_values(Night("m1", "a1"))

    assert values == values_of("m1", "a1")
    assert statement.compile().params.keys() == values.keys()
    merchant, account = values
    told = str(statement)
    assert f"merchant_id = :{merchant}" in told
    assert f"account_id = :{account}" in told
    assert (values[merchant], values[account]) == ("m1", "a1")
