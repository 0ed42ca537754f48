"""What the settings promise, in words for the doctors: replies, limits, people, codes, keys, desk.

Each function gives a sentence, or raises when a night would stumble over what it found. Whoever has
Prefect's password may have its worker run a program, which sees what the worker's environment
holds: a signer (`recon signer`) keeps the key from it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from recon.config.approvers import Approver
from recon.config.keys import SIGNER_VARIABLE, given, key_of_file, keys_in_environment
from recon.config.rules import Rules
from recon.config.settings import Settings
from recon.desk.held_keys import PRIVATE, SANDBOX_KEYS, SET_UP, SOCKET, held_keys
from recon.gateway_client import UnsignedError
from recon.instructions.signer_socket import SignerSocket
from recon.model.errors import ConfigurationError, ReconError
from recon.model.words import GatewayState, KeyAnswer
from recon.privacy.own_sockets import is_heard
from recon.steps.ground.environment import account_of, is_on_this_machine
from recon.store.database.engine import Store
from recon.store.nights import notification_rows
from recon.store.people.code_rows import SeenCode, codes_seen


def replies_told(settings: Settings) -> str:
    """Profile and policy of replies.

    Raises:
        ConfigurationError: a live night would refuse to send under this policy.
    """
    gateway = settings.gateway
    sentence = f"profile {gateway.profile}, reply_signatures {gateway.reply_signatures}"
    if gateway.reply_signatures == "enforce":
        return sentence
    if gateway.allow_unverified_replies:
        return f"{sentence}: unverified replies are allowed, so anybody on the way could forge one"
    msg = f'{sentence}: no live night will send; set "enforce", or allow_unverified_replies = true'
    raise ConfigurationError(msg)


def limits_told(settings: Settings) -> str:
    """Which currencies have a limit, and what becomes of the others.

    Raises:
        ConfigurationError: none has, so that no night can send by itself what files ask for.
    """
    limits = settings.limits
    general = sorted(limits.limits)
    own = sorted(f"{key} {currency}" for key, of in limits.accounts.items() for currency in of)
    if general or own:
        others = "none" if settings.is_sandbox else "none: what they ask for waits for two people"
        return f"set for {', '.join([*general, *own])}; other currencies have {others}"
    if settings.is_sandbox:
        return "none set, and the sandbox needs none"
    people = "every instruction waits for two people, and nothing bounds what they let go"
    if not any(account.auto_approve for account in settings.accounts.values()):
        return f"none set: {people} (auto_approve = false)"
    msg = f"none set: {people}; set `night` and `item` for each currency in limits.toml"
    raise ConfigurationError(msg)


def approvers_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Who may approve, and who of them cannot be authenticated.

    Raises:
        ConfigurationError: a secret that approvers.toml names is not there.
    """
    people = settings.approvers
    if not people:
        return "nobody is declared: what waits for a person waits for ever (approvers.toml)"
    if given(variables, SOCKET):
        return f"declared: {', '.join(sorted(people))}; their codes are checked at the desk"
    lost = [
        short
        for short, approver in people.items()
        if _has_lost_secret(approver, variables=variables)
    ]
    if lost:
        msg = f"the one-time-code secret of {', '.join(sorted(lost))} is named but not there"
        raise ConfigurationError(msg)
    bare = sorted(
        short
        for short, approver in people.items()
        if not approver.code_secret_env and approver.code_secret_file is None
    )
    sentence = f"declared: {', '.join(sorted(people))}"
    return (
        f"{sentence}; without a code, so not authenticated: {', '.join(bare)}" if bare else sentence
    )


def _has_lost_secret(approver: Approver, *, variables: Mapping[str, str]) -> bool:
    if approver.code_secret_file is not None:
        try:
            return not key_of_file(approver.code_secret_file)
        except ReconError:
            return True
    return (
        bool(approver.code_secret_env) and not variables.get(approver.code_secret_env, "").strip()
    )


def codes_told(settings: Settings, *, store: Store) -> str:
    """How many codes of stored answers nobody has mapped, over all accounts.

    Raises:
        StoreError: the database cannot be read.
    """
    unmapped = {
        f"{seen.field} {seen.code}"
        for key in settings.accounts
        for seen in unmapped_codes(store, rules=settings.rules, account=account_of(key))
    }
    if not unmapped:
        return "every code seen so far is mapped"
    named = ", ".join(sorted(unmapped))
    return f"not mapped: {named}; `recon gateway doctor` prints the lines for rules.toml"


def notifications_told(store: Store) -> str:
    """How many messages of the gateway were kept and refused.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as connection:
        counts = notification_rows.counts(connection)
    kept = counts.pop("kept")
    refused = ", ".join(f"{count} {problem}" for problem, count in counts.items())
    return f"{kept} kept, " + (f"refused: {refused}" if refused else "none refused")


def unmapped_codes(store: Store, *, rules: Rules, account: tuple[str, str]) -> list[SeenCode]:
    """Codes of an account's stored answers that rules.toml does not have.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as connection:
        seen = codes_seen(connection, merchant_id=account[0], account_id=account[1])
    unknown = {
        "payment_status": lambda code: rules.state_of(code) is GatewayState.UNMAPPED,
        "query_result": lambda code: rules.answer_of(code) is KeyAnswer.UNMAPPED,
    }
    return [code for code in seen if unknown[code.field](code.code)]


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
            f"it; a signer would keep it apart ({SIGNER_VARIABLE}, docs/SECURITY.md)"
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
        f"it and name its socket in {SIGNER_VARIABLE} (docs/SECURITY.md), or put it into a file "
        "(RECON_SIGN_KEY_FILE), or accept it with plain_key_under_prefect = true in gateway.toml"
    )
