"""`recon gateway doctor`: check the connection to the gateway and whether it understands us.

Read only: connections that are closed again, queries for an order that does not exist, and one for
the orders that a person names. Each check is one line with what to do; nothing is stored and no
setting is changed.

What the API document leaves open (docs/GATEWAY.md, "Two gateways") is found out by reads: one query
has a field that the document does not list, and one has an invalid signature.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, product
from typing import Any
from urllib.parse import urlsplit

from recon.config.settings import Settings
from recon.gateway_client.addresses import Route, trust
from recon.gateway_client.documents import UnreadableReplyError, json_object, text_of
from recon.gateway_client.errors import (
    AddressError,
    NotSentError,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.gateway_client.interface import SignatureRules, SignatureState, WireAmounts
from recon.gateway_client.messages import PreparedCall, text_problem
from recon.gateway_client.queries import QUERY
from recon.gateway_client.replies import envelope_of
from recon.instructions.account import GatewayAccount, gateway_account
from recon.model.errors import ReconError
from recon.model.terms import Clock, GatewayState, KeyAnswer
from recon.privacy.foreign_text import redacted
from recon.steps.admin.doctor import ALL_MAPPED, PROBE_ORDER, Check, checked, unmapped_codes
from recon.store.database.engine import open_store
from recon.store.database.migrate import check_revision
from recon.store.nights.answer_parts import CodeCount

NOBODYS_SIGNATURE = "0" * 64
"""A value that no signature rule yields, for a request that must be refused."""
DISPLAYED_FIELDS = ("order_no", "currency", "amount", "payment_status", "query_result")


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of one query."""

    meaning: str
    """By the status map: accepted, signature, address, merchant …; silent for no answer."""
    message: str
    """The gateway's own text, or why there is none."""
    signature: SignatureState
    """The state of the reply's signature, checked with the request's rule."""
    rows: tuple[Mapping[str, str], ...] = ()
    """Rows about the queried orders, each field as text, "" if missing."""
    code: str = ""
    """The code of a refusal, such as I0013; "" if it has none."""
    skew_seconds: float | None = None
    """How far the gateway's clock (its Date header) is ahead of ours; None without that header."""


def rules_to_try(configured: SignatureRules) -> Iterator[tuple[str, SignatureRules]]:
    """Yield the configured rule, then every other one this product knows, each with its name."""
    yield "as configured", configured
    templates = (("merchant_id", "account_id"), ("merchant_id", "account_id", "orders"))
    for algorithm, template, case in product(
        ("sha256", "hmac-sha256"), templates, ("lower", "upper")
    ):
        rule = configured.model_copy(
            update={
                "algorithm": algorithm,
                "hex_case": case,
                "templates": {**configured.templates, QUERY: template},
            }
        )
        if rule != configured:
            yield f"{algorithm} over {' + '.join(template)}, {case} case", rule


async def probe(
    account: GatewayAccount,
    *,
    rule: SignatureRules,
    clock: Clock,
    order_nos: tuple[str, ...] = (PROBE_ORDER,),
    more: Mapping[str, str] | None = None,
    is_signed: bool = True,
) -> Probe:
    """Send one query, with fields added to those of the document's table (`more`).

    It is signed by `rule`, or carries an invalid signature.
    """
    described = account.interface.profile.query.retrievalTrans
    joined = ",".join(order_nos)
    fields = {described.keys["order_no"]: joined}
    try:
        interface = account.interface.model_copy(update={"signature": rule})
        signing = replace(account, interface=interface)
        signature = signing.sign(QUERY, fields={**fields, "orders": joined})
    except UnsignedError as error:
        return Probe("silent", str(error), SignatureState.UNCHECKED)
    reported = signature if is_signed else NOBODYS_SIGNATURE
    strict = replace(account, policy="enforce")
    probe_call = PreparedCall.of(
        {**fields, **(more or {})},
        described=described,
        account=strict,
        signature=reported,
        operation=QUERY,
    )
    try:
        async with account.client(clock=clock).transport.reading() as read:
            raw = await read(probe_call)
    except (NotSentError, UnknownOutcomeError) as error:
        return Probe("silent", str(error), SignatureState.UNCHECKED)
    try:
        reply = json_object(account.without_key(raw.body))
    except UnreadableReplyError as error:
        sentence = f"HTTP {raw.status}, and the reply is {error}"
        return Probe("silent", sentence, SignatureState.ABSENT)
    envelope = envelope_of(reply, sent=replace(probe_call, signature=signature))
    status = envelope.return_status
    meanings = account.interface.status_map.query_return_status
    dated, rows = raw.dated, reply.get(described.rows_field)
    named_payments = (
        row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and text_of(row.get("order_no")) in order_nos
    )
    return Probe(
        "signature" if envelope.refuses_signature else meanings.get(status, "unknown"),
        f"HTTP {raw.status}, return_status {redacted(status) or 'missing'}, "
        f"{envelope.code_and_text or 'no text'}",
        envelope.signature,
        tuple(
            {name: redacted(text_of(row.get(name)) or "") for name in DISPLAYED_FIELDS}
            for row in named_payments
        ),
        envelope.code,
        None if dated is None else (dated - raw.received_at).total_seconds(),
    )


PORTS = {"https": 443, "http": 80}


CERTIFICATE_DAYS_MIN = 14
"""A certificate that expires sooner is reported as a fault."""


def connection_reported(
    base_url: str, *, route: Route, connect_seconds: float, now: datetime
) -> str:
    """Return whether the gateway can be reached, over what, and when its certificate expires.

    Raises:
        ReconError: it cannot be reached, or its certificate expires soon.
    """
    if route.proxy:
        return f"by the proxy {route.proxy}; the query below shows whether that works"
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    try:
        trusted = trust(base_url, route=route)
        with socket.create_connection((host, port), timeout=connect_seconds) as plain:
            if parts.scheme == "http":
                return f"{host}:{port} answers; no TLS, which is allowed on this machine only"
            with trusted.wrap_socket(plain, server_hostname=host) as wrapped:
                protocol, certificate = wrapped.version(), wrapped.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        msg = (
            f"the certificate of {host} is not accepted ({error.verify_message}): if it is the "
            "gateway's own authority, name that as ca_file in gateway.toml"
        )
        raise ReconError(msg) from error
    except (OSError, AddressError) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        msg = f"{host}:{port} cannot be reached ({cause}): check address, firewall and proxy"
        raise ReconError(msg) from error
    seconds = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
    ends_at = datetime.fromtimestamp(seconds, UTC)
    sentence = f"{host}:{port} answers over {protocol}; its certificate ends on {ends_at:%Y-%m-%d}"
    if (left := ends_at - now) < timedelta(days=CERTIFICATE_DAYS_MIN):
        msg = f"{sentence}, in {left.days} days: ask the gateway when it will be replaced"
        raise ReconError(msg)
    return sentence


SKEW_SECONDS_MAX = 60
MATCHES_FOR_ENFORCE = 10
"""Consecutive replies with the right signature before `enforce` is proposed."""

CURES: Mapping[str, str] = {
    "address": "register the outgoing IP address of this machine with the gateway",
    "merchant": "check both ids, and that the key belongs to this environment",
    "parameters": "check the fields of the query in profiles.toml",
    "silent": "check the address; the gateway gave no answer that can be read",
}
"""What to do about a refusal, by its term in the status map."""


def gateway_checks(
    settings: Settings,
    *,
    account: tuple[str, str],
    clock: Clock,
    orders: Sequence[str] = (),
    refunded: Sequence[str] = (),
) -> Iterator[Check]:
    """Yield the checks of the connection, the clock, the signature and the codes, in that order.

    `orders` are known to a person; of the `refunded` ones money went back to the shopper.
    """
    try:
        declared = gateway_account(settings, merchant_id=account[0], account_id=account[1])
    except ReconError as error:
        yield Check("configuration", ok=False, sentence=str(error))
        return
    gateway = settings.gateway
    sentence = f"{gateway.profile}, replies' signatures {gateway.reply_signatures}"
    sentence += ", unverified replies allowed" * gateway.allow_unverified_replies
    yield Check("profile", ok=True, sentence=sentence)
    look = partial(
        connection_reported,
        declared.base_url,
        route=declared.route,
        connect_seconds=gateway.connect_timeout_seconds,
        now=clock(),
    )
    yield (connection := checked("connection", look))
    if not connection.ok:
        return
    yield from asyncio.run(_answered(declared, clock=clock, orders=orders, refunded=refunded))
    yield checked("codes", lambda: _codes(settings, account=account))


async def _answered(
    account: GatewayAccount, *, clock: Clock, orders: Sequence[str], refunded: Sequence[str]
) -> list[Check]:
    """Return the checks of answers, the signature first: the gateway checks it before all else."""
    # A separate signer signs only by its own rules, whatever would be tried here.
    tries = 1 if account.settings.sign_keys.signer else None
    tried: list[tuple[str, SignatureRules, Probe]] = []
    for name, rule in islice(rules_to_try(account.interface.signature), tries):
        tried.append((name, rule, await probe(account, rule=rule, clock=clock)))
        if tried[-1][2].meaning != "signature":
            break
    # If all were refused, use the answer to the configured rule.
    name, rule, answer = tried[0 if tried[-1][2].meaning == "signature" else -1]
    checks = []
    if (skew := answer.skew_seconds) is not None:
        sentence = f"the gateway's clock is {skew:+.0f} s from ours"
        if abs(skew) > SKEW_SECONDS_MAX:
            sentence += f", more than {SKEW_SECONDS_MAX} s: set this machine's clock (NTP)"
        checks.append(Check("clock", ok=abs(skew) <= SKEW_SECONDS_MAX, sentence=sentence))
    if answer.meaning == "signature":
        sentence = (
            f"all {len(tried)} rules we know are refused ({answer.message}): check the sign "
            "key, then ask the gateway which fields it signs"
        )
        return [*checks, Check("signature rule", ok=False, sentence=sentence)]
    if answer.meaning != "accepted":
        sentence = f"{CURES.get(answer.meaning, 'not understood')} ({answer.message})"
        return [*checks, Check("query", ok=False, sentence=sentence)]
    checks.append(Check("query", ok=True, sentence="answered, and our address is registered"))
    sentence = "accepted as configured"
    if is_other := len(tried) > 1:
        names = ", ".join(f'"{each}"' for each in rule.templates[QUERY])
        sentence = (
            f"ours is refused, {name} is accepted; put into signature.toml:\n"
            f'[user]\nalgorithm = "{rule.algorithm}"\n'
            f'hex_case = "{rule.hex_case}"\n[user.templates]\n{QUERY} = [{names}]'
        )
    checks.append(Check("signature rule", ok=not is_other, sentence=sentence))

    async def probe_call(**question: Any) -> Probe:
        await asyncio.sleep(1 / account.settings.gateway.calls_per_second)
        return await probe(account, rule=rule, clock=clock, **question)

    states = [answer.signature]
    while len(states) < MATCHES_FOR_ENFORCE and states[-1] is SignatureState.VALID:
        states.append((await probe_call()).signature)
    checks.append(_replies(states, policy=account.settings.gateway.reply_signatures))
    for difference, evaluate, question in _DIFFERENCES:
        ok, sentence = evaluate(account, await probe_call(**question))
        checks.append(Check(difference, ok=ok, sentence=sentence))
    return [
        *checks,
        *await _named_orders(account, probe_call=probe_call, orders=orders, refunded=refunded),
    ]


def _replies(states: Sequence[SignatureState], *, policy: str) -> Check:
    """Return whether the gateway's own signatures can be relied on."""
    if states[-1] is SignatureState.VALID:
        sentence = f"{len(states)} replies in a row carry the right signature"
        if policy != "enforce":
            sentence += f'; you have {policy}: set reply_signatures = "enforce" in gateway.toml'
        return Check("replies", ok=True, sentence=sentence)
    if states[-1] is SignatureState.ABSENT:
        sentence = "query replies carry no signature; those of money are verified when they come"
        return Check("replies", ok=True, sentence=sentence)
    sentence = f"reply {len(states)} carries a wrong signature ({states[-1]})"
    if policy == "enforce":
        sentence += ": no answer will be believed; ask the gateway how it signs its replies"
    return Check("replies", ok=policy != "enforce", sentence=sentence)


def _codes(settings: Settings, *, account: tuple[str, str]) -> str:
    with closing(open_store(settings.database_url.get_secret_value())) as store:
        check_revision(store)
        unmapped = unmapped_codes(store, rules=settings.rules, account=account)
    if not unmapped:
        return ALL_MAPPED
    listing = ", ".join(
        f"{counted.field} {counted.code} ({counted.count} answers, such as order "
        f"{counted.order_no})"
        for counted in unmapped
    )
    msg = f"not mapped: {listing}; put into rules.toml:\n{_toml_of_codes(unmapped)}"
    raise ReconError(msg)


def _toml_of_codes(unmapped: list[CodeCount]) -> str:
    """Return the lines to paste into rules.toml, with the values a person can choose from."""
    meanings = {
        "payment_status": "pending | in_review | authorised | paid | partially_refunded | "
        "refunded | cancelled | expired | failed | chargeback",
        "query_result": "found | not_found | failed",
    }
    lines: list[str] = []
    for key, choices in meanings.items():
        codes = [counted.code for counted in unmapped if counted.field == key]
        if codes:
            lines += [f"[{key}] # {choices}", *(f'{code} = "?"' for code in codes)]
    return "\n".join(lines)


ORDERS_MAX = 50
"""How many orders a person may name at once; half of what one query may contain."""
UNLISTED = {"recon_doctor": "probe"}
"""A field that no table of the document lists."""
HIDDEN_MEANS = (
    "a refund of ours is proven by its signed reply and the ledger, never by the query, one in "
    "doubt waits for two people, and one made in the gateway's own pages is seen in the ledger and "
    "the settlement files alone"
)
"""The consequences if the query shows no refunds."""
SHOW_REFUNDS = frozenset({GatewayState.REFUNDED, GatewayState.PARTIALLY_REFUNDED})


def _unknown_orders(account: GatewayAccount, answer: Probe) -> tuple[bool, str]:
    """Check that an order unknown to the gateway is distinct from one that it did not answer."""
    missing_means = account.interface.status_map.query.row_missing_when_asked_alone
    if not answer.rows:
        sentence = "orders that the gateway does not know have no row in its reply"
        if missing_means == "not_found":
            return True, sentence
        return False, (
            f"{sentence}, and each counts as unanswered; when the gateway confirms it, put into "
            'status_map.toml:\n[user.query]\nrow_missing_when_asked_alone = "not_found"'
        )
    code = answer.rows[0]["query_result"] or "blank"
    meaning = account.settings.rules.answer_of(code)
    sentence = (
        f"an order that the gateway does not know has a row with query_result {code}, {meaning}"
    )
    if meaning is KeyAnswer.NOT_FOUND:
        return True, sentence
    return False, f'{sentence}: put into rules.toml:\n[query_result]\n{code} = "not_found"'


def _unlisted_fields(_: GatewayAccount, answer: Probe) -> tuple[bool, str]:
    """Report whether a field that the document does not list is ignored; we send none."""
    if answer.meaning == "accepted":
        return True, "a field that the document does not list is ignored"
    return True, (
        f"a field that the document does not list is refused ({answer.message}): name a "
        "brand's further fields in profiles.toml only when the gateway knows them"
    )


def _refusals(account: GatewayAccount, answer: Probe) -> tuple[bool, str]:
    """Report how the gateway refuses a request, by a query with an invalid signature."""
    if answer.meaning == "accepted":
        return False, (
            "a query with nobody's signature was answered: whoever knows the account's numbers can "
            "read it; inform the gateway"
        )
    known = account.interface.status_map.refusals
    if answer.code in {*known.signature_codes, *known.before_processing_codes}:
        with_ = f"code {answer.code}, which status_map.toml lists"
    else:
        named = f"the code {answer.code}, which no list of status_map.toml has"
        with_ = (
            f"{named if answer.code else 'words and no code'} ({answer.message}): the rows of a "
            "batch that is refused like this stay in doubt until a query shows them (A-11)"
        )
    return True, f"a wrong signature is refused with {with_}"


_DIFFERENCES: Sequence[
    tuple[str, Callable[[GatewayAccount, Probe], tuple[bool, str]], Mapping[str, Any]]
] = (
    ("unknown orders", _unknown_orders, {}),
    ("further fields", _unlisted_fields, {"more": UNLISTED}),
    ("refusals", _refusals, {"is_signed": False}),
)
"""Differences that a query can show: name of the check, its function, and the query's arguments."""


async def _named_orders(
    account: GatewayAccount, *, probe_call: Any, orders: Sequence[str], refunded: Sequence[str]
) -> list[Check]:
    """Return checks of what the gateway shows of the named orders' payments."""
    orders = tuple(dict.fromkeys((*orders, *refunded)))
    if not orders:
        sentence = (
            "not looked at; name orders with --order, one of each currency, and with --refunded"
        )
        declared = [] if account.settings.rules.gateway.shows_refunds else [_declared_hidden([])]
        return [Check("amounts", ok=True, sentence=sentence), *declared]
    problems = [
        f"{order} {problem}"
        for order in orders
        if (problem := text_problem("order_no", text=order, interface=account.interface))
    ]
    if len(orders) > ORDERS_MAX:
        problems.append(f"{len(orders)} orders are named, at most {ORDERS_MAX} are asked about")
    if problems:
        return [Check("named orders", ok=False, sentence="; ".join(problems))]
    answer = await probe_call(order_nos=orders)
    rows = [row for row in answer.rows if row["amount"]]
    unknown = sorted(set(orders) - {row["order_no"] for row in rows})
    checks = [*_amounts(rows, amounts=account.interface.profile.amounts), *_statuses(account, rows)]
    checks += _refunds(account, [row for row in rows if row["order_no"] in refunded])
    if unknown:
        sentence = f"the gateway shows no payment of {', '.join(unknown)}"
        sentence += f" ({answer.message})" if answer.meaning != "accepted" else ""
        checks.append(Check("named orders", ok=False, sentence=sentence))
    return checks


def _amounts(rows: list[Mapping[str, str]], *, amounts: WireAmounts) -> Iterator[Check]:
    """Check that each currency's amounts have the decimals that we would send and read."""
    for currency in sorted({row["currency"] for row in rows}):
        texts = [row["amount"] for row in rows if row["currency"] == currency]
        reported = sorted({len(text.partition(".")[2]) for text in texts})
        ours = amounts.decimals_of(currency)
        is_lenient = QUERY in amounts.as_written and _are_read(texts, currency, amounts)
        ok = reported == [ours] or is_lenient
        decimals = " and ".join(str(count) for count in reported)
        sentence = f"{currency} is written with {decimals} decimals, such as {texts[0]}"
        if not ok:
            sentence += f"; ours has {'none known' if ours is None else ours}"
            sentence += f"; put into profiles.toml:\n{_amounts_toml(currency, texts, amounts)}"
        yield Check(f"amounts of {currency or 'no currency'}", ok=ok, sentence=sentence)


def _amounts_toml(currency: str, texts: list[str], amounts: WireAmounts) -> str:
    """Return the lines to paste, or a comment where a person has to ask the gateway first.

    The decimals of a currency are used for sending too: fewer than it has would refuse amounts that
    need them, so zeros that a reply leaves out are handled by a leniency of reading.
    """
    reported = {len(text.partition(".")[2]) for text in texts}
    ours = amounts.decimals_of(currency)
    lenient = amounts.model_copy(update={"as_written": amounts.as_written | {QUERY}})
    if reported == {amounts.decimals} and ours is not None and ours > amounts.decimals:
        return "[user.amounts]\nown_decimals_if_more = false"
    if not _are_read(texts, currency, amounts) and _are_read(texts, currency, lenient):
        names = ", ".join(f'"{name}"' for name in sorted(lenient.as_written))
        return f"[user.amounts]\nas_written = [{names}]"
    if len(reported) > 1 or (ours is not None and not _are_read(texts, currency, lenient)):
        return f"# nothing yet: ask the gateway how many decimals {currency} has"
    return f"[user.amounts.of_currency]\n{currency} = {reported.pop()}"


def _are_read(texts: list[str], currency: str, amounts: WireAmounts) -> bool:
    read = (amounts.amount_of(text, currency=currency, operation=QUERY) for text in texts)
    return None not in read


def _statuses(account: GatewayAccount, rows: list[Mapping[str, str]]) -> Iterator[Check]:
    """List what the payments' statuses mean to us; fails if one is not mapped."""
    rules = account.settings.rules
    examples = {row["payment_status"] or "blank": row["order_no"] for row in reversed(rows)}
    if not examples:
        return
    states = {code: rules.state_of(code) for code in sorted(examples)}
    listing = ", ".join(
        f"{code} of order {examples[code]} means {state}" for code, state in states.items()
    )
    new = [code for code, state in states.items() if state is GatewayState.UNMAPPED]
    if new:
        lines = "\n".join(f'{code} = "?"' for code in new)
        listing += f"; put into rules.toml what the gateway calls it:\n[payment_status]\n{lines}"
    yield Check("payment statuses", ok=not new, sentence=listing)


def _refunds(account: GatewayAccount, rows: list[Mapping[str, str]]) -> Iterator[Check]:
    """Check whether the query shows refunds, and name the consequences where it does not."""
    rules = account.settings.rules
    reported = [row for row in rows if rules.state_of(row["payment_status"]) in SHOW_REFUNDS]
    hidden = [row for row in rows if row not in reported]
    if not rules.gateway.shows_refunds:
        yield _declared_hidden(reported)
        return
    if not hidden:
        if rows:
            yield Check("refunds", ok=True, sentence="the query shows that orders are refunded")
        return
    sentence = f"orders that you know to be refunded are shown otherwise: {_listed(hidden)} (A-06)"
    is_visible = any(rules.shows(state) for state in SHOW_REFUNDS)
    if is_visible:
        sentence += (
            "; a refund that it confirmed would become a break, because rules.toml says that "
            "refunds can be seen. Only when the gateway confirms that its query never shows them: "
            f"then {HIDDEN_MEANS}; put into rules.toml:\n[gateway]\nshows_refunds = false"
        )
    yield Check("refunds", ok=not is_visible, sentence=sentence)


def _declared_hidden(reported: list[Mapping[str, str]]) -> Check:
    """Return what follows from the declaration, or the payments that contradict it."""
    if not reported:
        sentence = f"never shown, as rules.toml declares (shows_refunds = false): {HIDDEN_MEANS}"
        return Check("refunds", ok=True, sentence=sentence)
    sentence = (
        "rules.toml declares that refunds are never shown, yet the gateway shows "
        f"{_listed(reported)}: take shows_refunds = false away, or a confirmed refund that never "
        "came is believed"
    )
    return Check("refunds", ok=False, sentence=sentence)


def _listed(rows: list[Mapping[str, str]]) -> str:
    return ", ".join(f"{row['order_no']} as {row['payment_status'] or 'blank'}" for row in rows)
