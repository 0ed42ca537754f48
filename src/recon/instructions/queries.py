"""Queries to the gateway for our order keys, and conversion of its answers to table rows.

Refunds are searched by our own reference if the gateway has such a search.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from random import Random
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from recon.config.rules import Rules
from recon.config.settings import GatewaySettings, Settings
from recon.gateway_client import (
    CertificateError,
    FindingKind,
    InterfaceError,
    OrderRecord,
    QueryAnswers,
    QueryClient,
    QueryLimits,
    QueryRefusedError,
    RefundRecord,
    RiskFacts,
    UnsignedError,
)
from recon.gateway_client.pace import AccountPace
from recon.gateway_client.queries import parsed_date
from recon.instructions.account import GatewayAccount, gateway_account
from recon.model.errors import AmountError, ConfigurationError, SignerError
from recon.model.money import Money
from recon.model.terms import Clock, KeyAnswer

UNUSED_STORED_MAX = 100
"""Maximum number of stored messages on unexpected content of answers."""
DETAIL_CHARACTERS_MAX = 4_000
"""Maximum length of an answer's stored detail: risk data and fields not in the document."""

ANSWERS_BEST_FIRST = (KeyAnswer.FOUND, KeyAnswer.UNMAPPED, KeyAnswer.FAILED, KeyAnswer.NOT_FOUND)
"""Which answer counts for a key with several payments, best first."""

PERSON_WAITS_SECONDS = 5
"""How long a silent gateway is retried for a person who waits at a command line."""
_WITHOUT_PAYMENT = (KeyAnswer.FAILED, KeyAnswer.NOT_FOUND)
DETAILS_STORED = 1_024
"""Number of different details cached as text, each of at most DETAIL_CHARACTERS_MAX."""
Fields = tuple[tuple[str, str], ...]
"""Names and values of a mapping."""


@dataclass(frozen=True, slots=True)
class KeyAnswers:
    """Final answers about some keys."""

    answers: Mapping[str, tuple[KeyAnswer, str]]
    """Order number -> answer, with the reason of a failure."""
    observations: tuple[Mapping[str, Any], ...]
    """One row per payment shown, in the columns of the answer files (archive/schemas.py)."""
    unused: tuple[str, ...] = ()
    """Messages on content of the replies that no answer includes, sorted."""
    gateway_at: datetime | None = None
    """The earliest Date header of the replies."""


Found = TypeVar("Found")
AnswersTo = Callable[[Sequence[str]], Awaitable[KeyAnswers]]
"""Returns the final answers for order numbers."""


def _nobody(_: int) -> None:
    """Ignore the number of answered keys."""


async def ask(
    keys: Sequence[str],
    *,
    account: tuple[str, str],
    settings: Settings,
    clock: Clock,
    randomness: Random,
    pace: AccountPace | None = None,
) -> KeyAnswers:
    """Query orders of one (merchant, account) once; see `asking`."""
    async with asking(
        account=account, settings=settings, clock=clock, randomness=randomness, pace=pace
    ) as answers_to:
        return await answers_to(keys)


@asynccontextmanager
async def asking(
    *,
    account: tuple[str, str],
    settings: Settings,
    clock: Clock,
    randomness: Random,
    pace: AccountPace | None = None,
    answered: Callable[[int], None] = _nobody,
) -> AsyncIterator[AnswersTo]:
    """Open a client for an account; yields a function that queries orders over its connections.

    Every key gets a final answer.

    Args:
        account: Merchant and account id.
        settings: How the gateway is reached.
        clock: The clock.
        randomness: For the lengths of waits.
        pace: Shared pace of the account's queries, with any wait that the gateway requested.
        answered: Called with the number of newly answered keys.

    Raises:
        ConfigurationError: The gateway refuses us for a reason that only a person can correct.
    """
    declared = gateway_account(settings, merchant_id=account[0], account_id=account[1])
    opened = client_of(declared, clock=clock, randomness=randomness, pace=pace, answered=answered)
    async with opened as client:

        async def answers_to(keys: Sequence[str]) -> KeyAnswers:
            with _refusals():
                try:
                    reply = await client.query(order_nos=keys)
                except UnsignedError as error:
                    if error.final:
                        raise ConfigurationError(str(error)) from error
                    # As for a silent gateway: nothing was queried, so nothing is known.
                    return KeyAnswers(dict.fromkeys(keys, (KeyAnswer.FAILED, str(error))), ())
            return answers_of(reply, rules=settings.rules)

        yield answers_to


async def look_up(
    question: Callable[[QueryClient], Awaitable[Found]],
    *,
    account: tuple[str, str],
    settings: Settings,
    clock: Clock,
    randomness: Random,
) -> Found:
    """Return the gateway's own records, for a person or a doubt that needs them now.

    Raises:
        ConfigurationError: The gateway refuses us for a reason that only a person can correct, or
            its profile does not support the query.
        SignerError: The query could not be signed.
    """
    declared = gateway_account(settings, merchant_id=account[0], account_id=account[1])
    with _refusals():
        async with client_of(declared, clock=clock, randomness=randomness) as client:
            return await question(client)


@contextmanager
def _refusals() -> Iterator[None]:
    """Translate refused queries to errors that state what a person must correct."""
    try:
        yield
    except (QueryRefusedError, CertificateError, InterfaceError) as error:
        is_untrusted = isinstance(error, CertificateError)
        cure = ": check the address and `ca_file` (gateway.toml)" if is_untrusted else ""
        msg = f"{error}{cure or '; nothing was sent'}"
        raise ConfigurationError(msg) from error
    except UnsignedError as error:
        raise SignerError(str(error)) from error


def pace_of(
    gateway: GatewaySettings,
    *,
    retry_max: int | None = None,
    ends_in_seconds: float | None = None,
) -> AccountPace:
    """Return the initial pace of an account's queries, with nothing learnt of the gateway yet."""
    retry_time = gateway.read_retry_seconds
    limits = QueryLimits(
        calls_per_second=gateway.calls_per_second,
        in_flight=gateway.queries_in_flight,
        retry_seconds=retry_time if retry_max is None else min(retry_time, retry_max),
    )
    return AccountPace(limits, ends_in_seconds=ends_in_seconds)


def client_of(
    account: GatewayAccount,
    *,
    clock: Clock,
    randomness: Random,
    pace: AccountPace | None = None,
    answered: Callable[[int], None] = _nobody,
) -> QueryClient:
    """Return a client for an account's queries; without `pace` it is for a person who waits."""
    pace = pace or pace_of(account.settings.gateway, retry_max=PERSON_WAITS_SECONDS)
    return account.client(clock=clock).reading(pace=pace, randomness=randomness, answered=answered)


def answers_of(replies: QueryAnswers, *, rules: Rules) -> KeyAnswers:
    """Convert replies to answers by our rules, which map codes to found, not found or failed.

    Args:
        replies: The gateway's replies.
        rules: The meaning of its codes.
    """
    answers = dict.fromkeys(replies.not_found, (KeyAnswer.NOT_FOUND, ""))
    answers |= {failed.key: (KeyAnswer.FAILED, failed.reason) for failed in replies.failed}
    observations: list[Mapping[str, Any]] = []
    by_key: dict[str, list[tuple[KeyAnswer, str]]] = {}
    zone = ZoneInfo(rules.gateway.timezone)
    details: dict[tuple[int, int, int], str] = {}

    @cache
    def answer_of(query_result: str) -> tuple[KeyAnswer, str]:
        """Return the answer for a code, with a reason unless it is FOUND."""
        answer = rules.answer_of(query_result)
        return answer, "" if answer is KeyAnswer.FOUND else f"query_result {query_result}"

    for record in replies.found:
        evaluated = answer_of(record.query_result)
        if evaluated[0] not in _WITHOUT_PAYMENT:
            row = _row(record, zone=zone, details=details)
            if isinstance(row, str):
                evaluated = KeyAnswer.FAILED, row
            else:
                observations.append(row)
        by_key.setdefault(record.key, []).append(evaluated)
    # One unreadable payment makes the order FAILED: the others would be only a part of it.
    broken: set[str] = set()
    for key, ends in by_key.items():
        failed = next((one for one in ends if one[0] is KeyAnswer.FAILED), None)
        answers[key] = failed or min(ends, key=lambda one: ANSWERS_BEST_FIRST.index(one[0]))
        if failed:
            broken.add(key)
    saved = tuple(row for row in observations if row["order_no"] not in broken)
    unused = tuple(sorted(set(_unused(replies)))[:UNUSED_STORED_MAX])
    return KeyAnswers(answers, saved, unused, replies.gateway_at)


def _unused(replies: QueryAnswers) -> Iterator[str]:
    """Yield messages on rows that were not queried, and on unreadable cells of rows that count."""
    failed_keys = {f"{failed.key}: {failed.reason}" for failed in replies.failed}
    for finding in replies.findings:
        if finding.kind is FindingKind.FOREIGN_ROW:
            order, transaction = finding.order_no or "none", finding.transaction_id or "none"
            yield f"{finding.message}: order {order}, transaction {transaction}"
        elif finding.kind is FindingKind.MALFORMED and finding.message not in failed_keys:
            yield finding.message


def _row(
    record: OrderRecord, *, zone: ZoneInfo, details: dict[tuple[int, int, int], str]
) -> Mapping[str, Any] | str:
    """Return the table row of one payment, or the reason why it cannot be read.

    Args:
        record: As the client read it.
        zone: The time zone of the rules; usually the client's too.
        details: Cache of one reply: ids of a detail's objects -> its text.
    """
    at = record.transaction_at
    if at is None or at.tzinfo is not zone:
        at = parsed_date(record.transaction_date, zone=zone)
    try:
        amount = Money(record.amount, record.currency).minor_units
    except AmountError as error:
        return f"the gateway's amount cannot be read: {error}"
    return {
        "order_no": record.order_no,
        "transaction_id": record.transaction_id,
        "currency": record.currency,
        "amount": amount,
        "payment_status": record.payment_status,
        "query_result": record.query_result,
        "reference_no": record.reference_no,
        "transaction_date": at and at.astimezone(UTC),
        "queried_at": record.queried_at,
        "detail": _detail(record, known=details),
    }


def _detail(record: OrderRecord, *, known: dict[tuple[int, int, int], str]) -> str:
    """Return further content as JSON; rows of a reply with equal content share the objects."""
    same = (id(record.risk), id(record.extra), id(record.reply_extra))
    text = known.get(same)
    if text is None:
        row, reply = tuple(record.extra.items()), tuple(record.reply_extra.items())
        text = known[same] = _detail_of(record.risk, row=row, reply=reply)
    return text


@lru_cache(maxsize=DETAILS_STORED)
def _detail_of(risk: RiskFacts, *, row: Fields, reply: Fields) -> str:
    """Return it as JSON; if too long, without undocumented fields."""
    known = {name: value for name, value in asdict(risk).items() if value}
    undocumented = {"row": dict(row), "reply": dict(reply)}
    for document in ({"risk": known, **undocumented}, {"risk": known, "cut": True}, {"cut": True}):
        text = json.dumps(document, sort_keys=True)
        if len(text) <= DETAIL_CHARACTERS_MAX:
            return text
    return "{}"


@dataclass(frozen=True, slots=True)
class RefundAnswer:
    """The answer to a search for one reference."""

    records: tuple[RefundRecord, ...]
    queried_at: datetime | None
    gateway_at: datetime | None = None

    def reference_of(self, *, amount: int, currency: str) -> str | None:
        """Return the gateway's id of our refund, "" if it has none, None if it is unclear.

        A record with our reference but another amount or currency proves neither.
        """
        if not self.records:
            return ""
        refund = Money.of_minor_units(amount, currency=currency).amount
        fitting = [
            record
            for record in self.records
            if (record.currency, record.refund_amount) == (currency, refund)
        ]
        if len(fitting) != len(self.records) or len(fitting) != 1:
            return None
        return fitting[0].refund_reference_id or None


async def search_refunds(
    references: Sequence[str],
    *,
    account: tuple[str, str],
    settings: Settings,
    clock: Clock,
    randomness: Random,
) -> dict[str, RefundAnswer]:
    """Search refunds by our references; references without a usable answer are left out.

    Raises:
        ConfigurationError: The gateway refuses us for a reason that only a person can correct.
        SignerError: The query could not be signed.
    """
    looked_up = await look_up(
        lambda client: client.refunds(references=references),
        account=account,
        settings=settings,
        clock=clock,
        randomness=randomness,
    )
    records: dict[str, list[RefundRecord]] = {}
    for record in looked_up.found:
        records.setdefault(record.key, []).append(record)
    dated = looked_up.gateway_at
    answers = {
        key: RefundAnswer(tuple(rows), rows[0].queried_at, dated) for key, rows in records.items()
    }
    return answers | {key: RefundAnswer((), None, dated) for key in looked_up.not_found}
