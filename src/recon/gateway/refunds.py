"""Refunds by our own reference: what the gateway's refund search says of our instructions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from recon.config.settings import Settings
from recon.gateway.account import gateway_account
from recon.gateway.queries import client_of
from recon.gateway_client import (
    CertificateError,
    InterfaceError,
    QueryRefusedError,
    RefundAnswers,
    RefundRecord,
    UnsignedError,
)
from recon.model.errors import ConfigurationError, SignerError
from recon.model.money import Money
from recon.model.words import Clock


@dataclass(frozen=True, slots=True)
class RefundAnswer:
    """What one search says of one reference."""

    records: tuple[RefundRecord, ...]
    queried_at: datetime | None
    gateway_at: datetime | None = None

    def reference_of(self, *, amount: int, currency: str) -> str | None:
        """The gateway's number of our refund, "" when it has none, None when it is unclear.

        A record with our reference but another amount or currency is no evidence of either.
        """
        if not self.records:
            return ""
        fitting = [
            record for record in self.records if _fits(record, amount=amount, currency=currency)
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
    """Ask for refunds that carry these references; references without a usable answer are absent.

    Raises:
        ConfigurationError: the gateway refuses us for a cause that only a person can cure.
    """
    looked_up = await look_up_refunds(
        references=references,
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


async def look_up_refunds(
    *,
    order_nos: Sequence[str] = (),
    references: Sequence[str] = (),
    account: tuple[str, str],
    settings: Settings,
    clock: Clock,
    randomness: Random,
) -> RefundAnswers:
    """The gateway's own records of the refunds of some orders, or of some references of ours.

    Raises:
        ConfigurationError: the gateway refuses us for a cause that only a person can cure, or the
            profile knows no search for refunds.
    """
    declared = gateway_account(settings, merchant_id=account[0], account_id=account[1])
    try:
        async with client_of(declared, clock=clock, randomness=randomness) as client:
            return await client.refunds(order_nos=order_nos, references=references)
    except (QueryRefusedError, CertificateError, InterfaceError) as error:
        msg = f"{error}; nothing was sent"
        raise ConfigurationError(msg) from error
    except UnsignedError as error:
        raise SignerError(str(error)) from error


def _fits(record: RefundRecord, *, amount: int, currency: str) -> bool:
    refunded = Money.of_minor_units(amount, currency=currency).amount
    return record.currency == currency and record.refund_amount == refunded
