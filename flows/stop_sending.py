"""Flow `stop-sending`: the switch for all sending of money, in Prefect's form.

One person stops it at once, and needs no code for it; two let money be sent again, at the desk. The
first run without a choice only shows how the switch stands.
"""

from enum import StrEnum
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import SecretStr

from flows.approve import Reason, ShortName
from flows.outcome import in_words
from tasks.running import opened_environment, say, sentences_only


class Switch(StrEnum):
    """What the form offers."""

    SHOW = "show"
    STOP = "stop"
    ALLOW = "allow"
    TAKE_BACK = "take_back"


@flow(
    name="stop-sending",
    flow_run_name="stop-sending: {turn} {name}",
    retries=0,
    persist_result=False,
)
@in_words()
def stop_sending(
    turn: Switch = Switch.SHOW,
    name: ShortName = "",
    reason: Reason = "",
    code: SecretStr | None = None,
) -> State[Any]:
    """Show whether money is sent, stop all sending at once, or let money be sent again.

    Args:
        turn: show looks only; stop ends all sending of every account, a night at work before its
            next batch; allow is one of the two words that end a stop; take_back takes your own
            allow back while the second is missing.
        name: Your short name in approvers.toml.
        reason: Why; kept in the history.
        code: Your current one-time code, for allow.
    """
    with sentences_only("stop-sending"), opened_environment() as environment:
        from recon.steps.money import sending
        from recon.steps.people.at_desk import say as say_at_desk

        if turn is Switch.STOP:
            sending.stop_sending(by=name, reason=reason, environment=environment)
            return _ended(
                "Sending is stopped for every account, until two people allow it. Nights still "
                "compare.",
                name="Stopped",
            )
        if turn is Switch.ALLOW:
            body = {"reason": reason}
            done = say_at_desk("allow-sending", body, who=(name, code), environment=environment)
            if done["complete"]:
                return _ended("Money may be sent again, from the next night on.", name="Allowed")
            return _ended("Noted: a second person must allow it, too.", name="Noted")
        if turn is Switch.TAKE_BACK:
            taken = {"subject": "allow-sending"}
            done = say_at_desk("take-back", taken, who=(name, code), environment=environment)
            return _ended(f"Taken back: {done['what']}.", name="Taken back")
        stop = sending.sending_stopped(environment)
        return _ended(f"{stop}." if stop else "Money may be sent.", name="Shown")


def _ended(sentence: str, *, name: str) -> State[Any]:
    say(sentence)
    return Completed(name=name, message=sentence)
