"""`recon gateway doctor`: is the way to the gateway right, and does it understand us?

Read only: connections that are closed again, queries for an order that nobody has, and one for the
orders that a person names. Each check is one line with what to do; nothing is stored and no setting
is changed.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from recon.config.settings import Settings
from recon.gateway_client.interface import SignatureRules
from recon.gateway_client.query_records import QUERY
from recon.gateway_client.signing import SignatureState
from recon.instructions.account import GatewayAccount, gateway_account
from recon.instructions.probe import Probe, probe, rules_to_try, shake_hands
from recon.model.errors import ReconError
from recon.model.words import Clock
from recon.steps.care.doctor import Check
from recon.steps.care.gateway_differences import NOBODY, KnownOrders, differences
from recon.steps.care.settings_told import unmapped_codes
from recon.store.database.engine import open_store
from recon.store.database.migrate import check_revision
from recon.store.people.code_rows import SeenCode

CERTIFICATE_DAYS_MIN = 14
"""A certificate that ends sooner is a fault of tomorrow."""

SKEW_SECONDS_MAX = 60
MATCHES_FOR_ENFORCE = 10
"""So many replies in a row must carry the right signature before `enforce` is proposed."""

CURES: Mapping[str, str] = {
    "address": "register the outgoing IP address of this machine with the gateway",
    "merchant": "check both ids, and that the key belongs to this environment",
    "parameters": "check the fields of the query in profiles.toml",
    "silent": "check the address; the gateway gave no answer that can be read",
}
"""What to do about a refusal, by the status map's word for it."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The first signature rule that the gateway did not refuse."""

    name: str
    rule: SignatureRules
    answer: Probe
    tried: int


def gateway_checks(
    settings: Settings, *, account: tuple[str, str], clock: Clock, named: KnownOrders = NOBODY
) -> Iterator[Check]:
    """Look at the connection, the clock, the signature and the codes, in that order.

    Args:
        settings: How the gateway is reached.
        account: Merchant and account.
        clock: The time.
        named: Orders that a person knows.
    """
    try:
        declared = gateway_account(settings, merchant_id=account[0], account_id=account[1])
    except ReconError as error:
        yield Check("configuration", ok=False, sentence=str(error))
        return
    yield Check("profile", ok=True, sentence=_described(settings))
    connection = _connection(declared, clock=clock)
    yield connection
    if not connection.ok:
        return
    accepted = asyncio.run(_accepted(declared, clock=clock))
    yield from _clock(accepted.answer)
    yield from _understanding(accepted)
    if accepted.answer.word == "accepted":
        yield asyncio.run(_replies(declared, accepted=accepted, clock=clock))
        yield from asyncio.run(differences(declared, rule=accepted.rule, clock=clock, named=named))
    yield _codes(settings, account=account)


def _described(settings: Settings) -> str:
    gateway = settings.gateway
    sentence = f"{gateway.profile}, replies' signatures {gateway.reply_signatures}"
    return sentence + ", unverified replies allowed" * gateway.allow_unverified_replies


def _connection(account: GatewayAccount, *, clock: Clock) -> Check:
    if account.route.proxy:
        sentence = f"by the proxy {account.route.proxy}; the query below shows whether that works"
        return Check("connection", ok=True, sentence=sentence)
    seconds = account.settings.gateway.connect_timeout_seconds
    handshake = shake_hands(account.base_url, route=account.route, connect_seconds=seconds)
    if isinstance(handshake, str):
        return Check("connection", ok=False, sentence=handshake)
    if handshake.certificate_ends_at is None:
        sentence = f"{handshake.reached} answers; no TLS, which is allowed on this machine only"
        return Check("connection", ok=True, sentence=sentence)
    left = handshake.certificate_ends_at - clock()
    sentence = (
        f"{handshake.reached} answers over {handshake.protocol}; its certificate ends on "
        f"{handshake.certificate_ends_at:%Y-%m-%d}"
    )
    if left < timedelta(days=CERTIFICATE_DAYS_MIN):
        sentence += f", in {left.days} days: ask the gateway when it will be replaced"
        return Check("connection", ok=False, sentence=sentence)
    return Check("connection", ok=True, sentence=sentence)


async def _accepted(account: GatewayAccount, *, clock: Clock) -> Accepted:
    """Ask by rule after rule until one is not refused; the configured one when all are."""
    configured = account.interface.signature
    first: Accepted | None = None
    # A signer elsewhere signs by its own rules alone, whatever we would try.
    tries = 1 if account.settings.sign_keys.signer else None
    rules = islice(rules_to_try(configured), tries)
    for number, (name, rule) in enumerate(rules, start=1):
        answer = await probe(account, rule=rule, clock=clock)
        tried = Accepted(name, rule, answer, number)
        if answer.word != "signature":
            return tried
        first = first or tried
    refused = first or Accepted(
        "", configured, await probe(account, rule=configured, clock=clock), 0
    )
    return Accepted("", configured, refused.answer, number)


def _clock(answer: Probe) -> Iterator[Check]:
    if answer.skew_seconds is None:
        return
    skew = abs(answer.skew_seconds)
    sentence = f"the gateway's clock is {answer.skew_seconds:+.0f} s from ours"
    if skew > SKEW_SECONDS_MAX:
        sentence += f", more than {SKEW_SECONDS_MAX} s: set this machine's clock (NTP)"
    yield Check("clock", ok=skew <= SKEW_SECONDS_MAX, sentence=sentence)


def _understanding(accepted: Accepted) -> Iterator[Check]:
    """The signature first, since the gateway looks at nothing else before it."""
    answer = accepted.answer
    if answer.word == "signature":
        sentence = (
            f"all {accepted.tried} rules we know are refused ({answer.message}): check the sign "
            "key, then ask the gateway which fields it signs"
        )
        yield Check("signature rule", ok=False, sentence=sentence)
        return
    if answer.word != "accepted":
        sentence = f"{CURES.get(answer.word, 'not understood')} ({answer.message})"
        yield Check("query", ok=False, sentence=sentence)
        return
    yield Check("query", ok=True, sentence="answered, and our address is registered")
    if accepted.tried == 1:
        yield Check("signature rule", ok=True, sentence="accepted as configured")
        return
    sentence = (
        f"ours is refused, {accepted.name} is accepted; put into signature.toml:\n"
        f"{_toml_of(accepted.rule)}"
    )
    yield Check("signature rule", ok=False, sentence=sentence)


def _toml_of(rule: SignatureRules) -> str:
    names = ", ".join(f'"{name}"' for name in rule.templates[QUERY])
    return (
        f'[user]\nalgorithm = "{rule.algorithm}"\nhex_case = "{rule.hex_case}"\n'
        f"[user.templates]\n{QUERY} = [{names}]"
    )


async def _replies(account: GatewayAccount, *, accepted: Accepted, clock: Clock) -> Check:
    """Whether the gateway's own signatures may be relied on."""
    states = [accepted.answer.signature]
    while len(states) < MATCHES_FOR_ENFORCE and states[-1] is SignatureState.VALID:
        await asyncio.sleep(1 / account.settings.gateway.calls_per_second)
        again = await probe(account, rule=accepted.rule, clock=clock)
        states.append(again.signature)
    policy, worst = account.settings.gateway.reply_signatures, states[-1]
    if worst is SignatureState.VALID:
        sentence = f"{len(states)} replies in a row carry the right signature"
        if policy != "enforce":
            sentence += f'; you have {policy}: set reply_signatures = "enforce" in gateway.toml'
        return Check("replies", ok=True, sentence=sentence)
    if worst is SignatureState.ABSENT:
        sentence = "query replies carry no signature; those of money are judged when they come"
        return Check("replies", ok=True, sentence=sentence)
    sentence = f"reply {len(states)} carries a wrong signature ({states[-1]})"
    if policy == "enforce":
        sentence += ": no answer will be believed; ask the gateway how it signs its replies"
    return Check("replies", ok=policy != "enforce", sentence=sentence)


def _codes(settings: Settings, *, account: tuple[str, str]) -> Check:
    try:
        with closing(open_store(settings.database_url.get_secret_value())) as store:
            check_revision(store)
            unmapped = unmapped_codes(store, rules=settings.rules, account=account)
    except ReconError as error:
        return Check("codes", ok=False, sentence=str(error))
    if not unmapped:
        return Check("codes", ok=True, sentence="every code seen so far is mapped")
    listing = ", ".join(
        f"{seen.field} {seen.code} ({seen.count} answers, such as order {seen.order_no})"
        for seen in unmapped
    )
    return Check(
        "codes",
        ok=False,
        sentence=f"not mapped: {listing}; put into rules.toml:\n{toml_of_codes(unmapped)}",
    )


def toml_of_codes(unmapped: list[SeenCode]) -> str:
    """The lines to paste, with the words a person chooses from."""
    words = {
        "payment_status": "pending | in_review | authorised | paid | partially_refunded | "
        "refunded | cancelled | expired | failed | chargeback",
        "query_result": "found | not_found | failed",
    }
    lines: list[str] = []
    for field, choices in words.items():
        codes = [seen.code for seen in unmapped if seen.field == field]
        if codes:
            lines += [f"[{field}] # {choices}", *(f'{code} = "?"' for code in codes)]
    return "\n".join(lines)
