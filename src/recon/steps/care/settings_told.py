"""What the settings promise, in words for the doctors: replies, limits, people, codes, messages.

Each function gives a sentence, or raises when a night would stumble over what it found.
"""

from collections.abc import Mapping

from recon.config.approvers import Approver
from recon.config.keys import given, key_of_file
from recon.config.rules import Rules
from recon.config.settings import Settings
from recon.desk.held_keys import SOCKET
from recon.model.errors import ConfigurationError, ReconError
from recon.model.words import GatewayState, KeyAnswer
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
        for seen in unmapped_codes(store, rules=settings.rules, account=_pair(key))
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


def _pair(key: str) -> tuple[str, str]:
    merchant_id, _, account_id = key.partition("/")
    return merchant_id, account_id
