"""What `recon doctor` says of the desk: whether words of people count, and what is open."""

from collections.abc import Mapping
from pathlib import Path

from recon.config.keys import given
from recon.config.settings import Settings
from recon.desk.held_keys import PRIVATE, SANDBOX_KEYS, SET_UP, SOCKET, held_keys
from recon.model.errors import ConfigurationError
from recon.privacy.own_sockets import is_heard
from recon.steps.ground.environment import is_on_this_machine


def desk_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Which key counts, where people are heard, and what this process has that it should not.

    Raises:
        ConfigurationError: nobody's word can count, no desk listens where one is named, or this
            process can read what the desk alone should have.
    """
    held = held_keys(variables, is_sandbox=is_on_this_machine(settings))
    if held.public is None:
        msg = f"nobody's word can be checked, so nothing that waits for people is sent: {SET_UP}"
        raise ConfigurationError(msg)
    if held is SANDBOX_KEYS:
        return "the sandbox's own key, which everybody knows: right for trying out only"
    if given(variables, SOCKET):
        return _apart(settings, variables=variables, name=held.name)
    if held.private is not None:
        return (
            f"key {held.name}, held by this very process: whoever has this login can speak for "
            "everybody; `recon desk serve` under a login of its own is the barrier"
        )
    return f"key {held.name}; words are checked here and heard elsewhere ({SOCKET} is not set)"


def _apart(settings: Settings, *, variables: Mapping[str, str], name: str) -> str:
    path = Path(variables[SOCKET])
    if not is_heard(path):
        msg = f"no desk listens at {path}: start `recon desk serve`; until then nobody is heard"
        raise ConfigurationError(msg)
    people = settings.approvers.items()
    secrets = sorted(
        short for short, person in people if given(variables, person.code_secret_env or "-")
    )
    open_to_us = [PRIVATE] if given(variables, PRIVATE) else []
    open_to_us += [f"the code secret of {short}" for short in secrets]
    if open_to_us:
        msg = (
            f"this process has {', '.join(open_to_us)}, which the desk alone should have: take it "
            "out of these variables"
        )
        raise ConfigurationError(msg)
    return f"key {name}; people are heard at {path}"
