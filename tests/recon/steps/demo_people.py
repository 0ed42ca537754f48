"""Two people with phones, declared at a demo whose refunds wait for them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyotp

from recon.model.figures import Attention
from recon.steps.approvals.people import undecided
from recon.steps.runtime.environment import environment_of, system_clock
from recon.webhooks.receiver import Receiver
from tests.recon.webhooks.told import ACCOUNT, MERCHANT, REFUND, form

PEOPLE = {"anna": "Anna Berg", "ben": "Ben Roy"}
CODE_LIVES = timedelta(seconds=30)
CURRENCIES = ("EUR", "GBP", "USD", "JPY", "KWD")


def declare_people(demo: Path) -> None:
    """Two approvers with codes, and instructions that wait for them."""
    limit = ", ".join(f"{currency} = 100000000" for currency in CURRENCIES)
    tables = []
    for short, name in PEOPLE.items():
        secret = _secret_of(demo, short)
        secret.touch(mode=0o600)
        secret.write_text(pyotp.random_base32())
        tables.append(
            f'[approvers.{short}]\nname = "{name}"\nlimit = {{ {limit} }}\n'
            f'code_secret_file = "{secret}"\n'
        )
    (demo / "config" / "approvers.toml").write_text("\n".join(tables))
    merchants = demo / "config" / "merchants.toml"
    merchants.write_text(
        merchants.read_text().replace("schedule =", "auto_approve = false\nschedule =")
    )


def phone_of(demo: Path, short: str, *, ahead: timedelta = timedelta()) -> str:
    """What somebody's phone shows now, or will in a moment: it knows no other time."""
    return pyotp.TOTP(_secret_of(demo, short).read_text()).at(datetime.now(UTC) + ahead)


def refund_reported(variables: Mapping[str, str]) -> Attention:
    """Let the gateway tell of a refund in doubt, and say which."""
    with environment_of(variables, clock=system_clock) as environment:
        refunds = [one for _, one in undecided(environment) if one.what == "refund in doubt"]
        doubt = min(refunds, key=lambda one: one.order_no)
        about = {"transaction_id": doubt.transaction_id, "order_no": doubt.order_no}
        receiver = Receiver(environment.settings, store=environment.store, clock=system_clock)
        message = form(REFUND | about | {"currency": doubt.currency})
        receiver.receive(message, merchant_id=MERCHANT, account_id=ACCOUNT)
    return doubt


def message_beside(doubt: Attention, *, shown: str) -> str:
    """The message that a line names beside a doubt; whoever decides has nothing else."""
    (line,) = [line for line in shown.splitlines() if doubt.instruction_id in line]
    (digest,) = re.findall(r"\(message ([0-9a-f]{12})\)", line)
    return str(digest)


def _secret_of(demo: Path, short: str) -> Path:
    return demo / "config" / f"{short}.secret"
