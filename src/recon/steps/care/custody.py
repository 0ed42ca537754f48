"""Who holds the sign key, and who could take it: for the doctor, and before a night of Prefect's.

Whoever has Prefect's password may have its worker run a program, which sees what the worker's
environment holds. A signer (`recon signer`) keeps the key from it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from recon.config.keys import SIGNER_VARIABLE, keys_in_environment
from recon.config.settings import Settings
from recon.gateway_client import UnsignedError
from recon.instructions.signer_socket import SignerSocket
from recon.model.errors import ConfigurationError
from recon.steps.ground.environment import is_on_this_machine

RUN_OF_PREFECT = "PREFECT__FLOW_RUN_ID"
"""Prefect's worker gives it to the processes that it starts."""
SERVER_OF_PREFECT = "PREFECT_API_URL"


def refuse_plain_key(settings: Settings, *, variables: Mapping[str, str]) -> None:
    """A run that Prefect started, for real money, has no sign key in its environment.

    Raises:
        ConfigurationError: it has one, and gateway.toml does not allow that.
    """
    named = _in_reach(settings, variables=variables)
    if named and not settings.gateway.plain_key_under_prefect:
        raise ConfigurationError(_refusal(named))


def custody_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Which set-up this is, in a sentence.

    Raises:
        ConfigurationError: nobody signs, or nights of Prefect would be refused.
    """
    if settings.sign_keys.signer is not None:
        return _signer_told(settings.sign_keys.signer, settings=settings)
    if named := _in_reach(settings, variables=variables):
        if not settings.gateway.plain_key_under_prefect and variables.get(SERVER_OF_PREFECT):
            raise ConfigurationError(_refusal(named))
        return (
            f"WARNING: in the environment ({', '.join(named)}): whatever runs as this user reads "
            f"it; a signer would keep it apart ({SIGNER_VARIABLE}, docs/SIGNER.md)"
        )
    if keys_in_environment(variables, accounts=settings.accounts):
        return "in the environment; the gateway is on this machine, so it protects nothing real"
    return (
        "in a file that this user reads, and in no environment: a program of this user could read "
        f"it, too; a signer of another user keeps it apart ({SIGNER_VARIABLE})"
    )


def _signer_told(signer: Path, *, settings: Settings) -> str:
    try:
        health = SignerSocket(signer).health()
    except UnsignedError as error:
        raise ConfigurationError(str(error)) from error
    missing = sorted(set(settings.accounts) - set(health.get("accounts", ())))
    if missing:
        msg = f"the signer at {signer} signs nothing for {', '.join(missing)}"
        raise ConfigurationError(msg)
    if health.get("uid") == os.geteuid():
        return (
            f"with the signer at {signer}, of this same user: in no environment, but a program of "
            "this user could read the signer's files; give it a user of its own"
        )
    return f"with the signer at {signer}, of another user: nothing here reads it"


def _in_reach(settings: Settings, *, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Variables with a key of real money; none where the gateway is on this machine."""
    if is_on_this_machine(settings):
        return ()
    return keys_in_environment(variables, accounts=settings.accounts)


def _refusal(named: tuple[str, ...]) -> str:
    return (
        f"{', '.join(named)} holds the sign key in the environment of what Prefect starts, where "
        "everybody who may start a run could read it; nothing was sent: let `recon signer` hold "
        f"it and name its socket in {SIGNER_VARIABLE} (docs/SIGNER.md), or put it into a file "
        "(RECON_SIGN_KEY_FILE), or accept it with plain_key_under_prefect = true in gateway.toml"
    )
