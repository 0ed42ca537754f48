"""How a command gets the one-time code of whoever speaks: asked for, or read from its input.

What stands on a command line is read by every login of the machine in /proc, and so may be used by
it first: only towards the sandbox, where nothing moves, is a code taken from there.
"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import SecretStr

    from recon.steps.ground.environment import Environment

FROM_INPUT = "-"
INPUT_CHARACTERS_MAX = 100
Code = Annotated[
    str,
    typer.Option(
        help="- reads your one-time code from the input; without it you are asked. The code itself "
        "is taken here towards the sandbox only: others can read a command line."
    ),
]


def code_of(name: str, *, code: str, environment: "Environment") -> "SecretStr | None":
    """The code of whoever speaks; asked for when one is needed and a terminal is there.

    Raises:
        UsageError: it stands on the command line, and the gateway is not on this machine; or the
            input has none.
    """
    from pydantic import SecretStr

    refuse_typed(code, environment=environment)
    if code == FROM_INPUT:
        return SecretStr(_from_input())
    if not code and _needs(name, environment=environment) and sys.stdin.isatty():
        code = typer.prompt("One-time code", hide_input=True)
    return SecretStr(code) if code else None


def refuse_typed(code: str, *, environment: "Environment") -> None:
    """Refuse a code that stands on the command line, before anything else is looked at.

    Raises:
        UsageError: the gateway is not on this machine.
    """
    from recon.steps.ground.environment import is_on_this_machine

    if code not in {"", FROM_INPUT} and not is_on_this_machine(environment.settings):
        _refuse()


def _needs(name: str, *, environment: "Environment") -> bool:
    from recon.steps.ground.identity import key_of

    declared = environment.settings.approvers.get(key_of(name, environment=environment))
    return bool(declared and (declared.code_secret_env or declared.code_secret_file))


def _from_input() -> str:
    from recon.model.errors import UsageError

    line = sys.stdin.readline(INPUT_CHARACTERS_MAX).strip()
    if not line:
        msg = "--code - reads the one-time code from the input, which is empty; nothing was changed"
        raise UsageError(msg)
    return line


def _refuse() -> None:
    from recon.model.errors import UsageError

    msg = (
        "a one-time code on the command line can be read by everybody on this machine, and used "
        "before you: leave --code away and you are asked for it, or say --code - and hand it over "
        "on the input. Nothing was changed; take the next code, this one was seen"
    )
    raise UsageError(msg)
