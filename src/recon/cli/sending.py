"""`recon stop-sending` and `recon allow-sending`: the switch for all money, on every account."""

import os
from typing import Annotated

import typer

from recon.cli.one_time_codes import Code
from recon.cli.people import As, ask_desk_to
from recon.cli.speaking import say

Name = Annotated[str, typer.Option("--as", help="Who does it.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the history.")]


def stop_sending(*, name: Name, reason: Reason) -> None:
    """Stop all sending of money at once: a night at work ends before its next batch."""
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.money import sending

    with environment_of(os.environ, clock=system_clock) as environment:
        sending.stop_sending(by=name, reason=reason, environment=environment)
    say("Sending is stopped for every account, until `recon allow-sending`. Nights still compare.")


def allow_sending(*, name: As, reason: Reason, code: Code = "") -> None:
    """Let money be sent again, from the next night on; two people do."""
    done = ask_desk_to("allow-sending", {"reason": reason}, name=name, code=code)
    if done["complete"]:
        say("Money may be sent again; the next night sends what waits.")
    else:
        say("Noted: a second person must allow it, too. Sending is still stopped.")
