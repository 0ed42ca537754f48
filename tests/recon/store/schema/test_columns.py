"""A reason that does not fit its column ends where a reader can see that it was cut."""

from dataclasses import dataclass

import pytest
from sqlalchemy import select

from recon.store.schema import instruction
from recon.store.schema.columns import (
    LEFT_OUT,
    REASON_CHARACTERS,
    in_account,
    in_accounts,
    reason_that_fits,
)

COMMAND = "two people say `recon approve --hold restore --as NAME --code CODE`, then nights go on"


def test_a_reason_that_fits_is_kept_as_it_is():
    longest = ("x\n" * REASON_CHARACTERS)[:REASON_CHARACTERS]
    assert reason_that_fits(longest) == longest


@pytest.mark.parametrize("before", range(REASON_CHARACTERS - len(COMMAND) - 2, REASON_CHARACTERS))
def test_no_command_is_cut_in_two(before):
    """Wherever the end falls, a command stands whole or not at all, and what is left out shows."""
    sentence = f"{('ab ' * REASON_CHARACTERS)[:before].strip()} {COMMAND}"
    saved = reason_that_fits(sentence)
    assert len(saved) <= REASON_CHARACTERS
    assert saved.count("`") in {0, 2}
    assert (saved == sentence) == (len(sentence) <= REASON_CHARACTERS)
    assert saved == sentence or saved.endswith(LEFT_OUT)


@dataclass(frozen=True)
class Night:
    merchant_id: str
    account_id: str


def test_a_condition_names_merchant_and_account():
    """No statement sees another account, whoever says which it is; of no account it sees none."""
    conditions = (in_account(instruction, Night("m1", "a1")), in_account(instruction, ("m1", "a1")))
    for condition in (*conditions, [in_accounts(instruction, [("m1", "a1")])]):
        told = select(instruction.c.order_no).where(*condition).compile()

        assert "merchant_id = :" in str(told)
        assert "account_id = :" in str(told)
        assert sorted(told.params.values()) == ["a1", "m1"]
    assert str(in_accounts(instruction, [])) == "false"
