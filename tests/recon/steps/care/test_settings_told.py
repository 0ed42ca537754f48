import random
from pathlib import Path
from typing import Any

import pytest

from recon.steps.care.doctor import Check, checks


def told(merchant: Any, **variables: str) -> dict[str, Check]:
    """The doctor's lines by their first word."""
    found = checks(
        merchant.variables | variables, clock=merchant.clock, randomness=random.Random(1)
    )
    return {check.name.split()[0]: check for check in found}


def configure(merchant: Any, name: str, text: str) -> Path:
    """Lay a file into the merchant's configuration, behind what is there."""
    path: Path = merchant.folder / "config" / name
    with path.open("a") as file:
        file.write(text)
    return path


def test_what_the_settings_promise_is_told(merchant: Any) -> None:
    """A bare installation says that it has no limits, no people, and verified replies."""
    found = told(merchant)

    assert found["replies"].sentence == "profile base, reply_signatures enforce"
    assert found["limits"].sentence == "none set, and the sandbox needs none"
    assert "nobody is declared" in found["approvers"].sentence
    assert found["notifications"].sentence == "0 kept, none refused"
    assert all(check.ok for check in found.values())


@pytest.mark.parametrize(
    ("lines", "ok", "words"),
    [
        ('reply_signatures = "warn"\n', False, "no live night will send"),
        ('reply_signatures = "off"\nallow_unverified_replies = true\n', True, "forge"),
    ],
)
def test_unverified_replies_are_told(merchant: Any, lines: str, *, ok: bool, words: str) -> None:
    """What a night would refuse is a fault before the night; what is allowed is said."""
    configure(merchant, "gateway.toml", lines)

    assert told(merchant)["replies"].ok is ok
    assert words in told(merchant)["replies"].sentence


def test_limits_name_their_currencies(merchant: Any) -> None:
    """Which currencies are bounded; the rest is not."""
    configure(merchant, "limits.toml", "[limits.EUR]\nitem = 10\n")

    assert told(merchant)["limits"].sentence == "set for EUR; other currencies have none"


def test_real_money_without_limits_is_a_fault(merchant: Any) -> None:
    """But where people decide everything; a currency without a limit says who decides."""
    key = {"RECON_SIGN_KEY": "of real money"}
    none = told(merchant, **key)["limits"]
    configure(merchant, "limits.toml", "[limits.EUR]\nitem = 10\n")
    some = told(merchant, **key)["limits"]

    assert not none.ok
    assert "every instruction waits for two people" in none.sentence
    assert some.ok
    assert some.sentence.endswith(
        "other currencies have none: what they ask for waits for two people"
    )


def test_people_without_a_code_are_named_and_a_lost_secret_is_a_fault(merchant: Any) -> None:
    """The secret itself is never shown."""
    configure(
        merchant,
        "approvers.toml",
        '[approvers.anna]\nname = "Anna"\ncode_secret_env = "RECON_CODE_ANNA"\n'
        '[approvers.ben]\nname = "Ben"\n',
    )

    there = told(merchant, RECON_CODE_ANNA="JBSWY3DPEHPK3PXP")["approvers"]
    lost = told(merchant)["approvers"]

    assert there.ok
    assert "not authenticated: ben" in there.sentence
    assert "JBSW" not in there.sentence
    assert not lost.ok
    assert "secret of anna" in lost.sentence


def test_codes_that_nobody_mapped_are_counted_over_all_accounts(merchant: Any) -> None:
    """The line names the code and the command that prints what to paste."""
    payment = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(payment))
    merchant.night()
    rules = merchant.folder / "config" / "rules.toml"
    kept = [line for line in rules.read_text().splitlines() if "2000" not in line]
    rules.write_text("\n".join(kept))

    assert "not mapped: payment_status 2000" in told(merchant)["codes"].sentence
