"""The clients that bench_gateway.py compares, each in a process of its own.

`ours` is recon's QueryClient. `aiohttp` does the same work by hand, as quickly as these libraries
let it: sign, encode, send, parse with orjson, and check every row as a client of money has to (key,
ids, currency, amount, known code, date by `fromisoformat`). It leaves out what ours does beside:
the same key twice in an object, depth, numbers as floats, card numbers in texts, pace, patience.
The peers need nothing of recon, so they run in an environment of their own.
"""

import asyncio
import gc
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

MERCHANT, ACCOUNT, KEY = "100042", "100042001", "sandbox"
GROUP = 100
_AMOUNT = re.compile(r"[0-9]{1,12}\.[0-9]{2,3}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9._-]{1,50}", re.ASCII)
_DATE = re.compile(r"[0-9]{14}", re.ASCII)
_CODES = frozenset({"1", "0", "-1", "-2"})
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


def order_numbers(calls: int) -> list[str]:
    """A hundred for each call, of the length that merchants' numbers have."""
    return [f"M1-2611200000{number:08d}" for number in range(calls * GROUP)]


async def ours(url: str, *, calls: int, in_flight: int) -> None:
    """The calls by recon's client."""
    from pydantic import SecretStr

    from recon.config.settings import GATEWAY_FILES, load_tables
    from recon.gateway_client import AsyncGateway, Connection, GatewayInterface, QueryLimits

    tables: Any = {name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}
    limits = QueryLimits(calls_per_second=1_000_000, in_flight=in_flight, retry_seconds=0)
    place = Connection(
        merchant_id=MERCHANT,
        account_id=ACCOUNT,
        sign_key=SecretStr(KEY),
        interface=GatewayInterface.of(**tables),
        base_url=url,
        limits=limits,
    )
    async with AsyncGateway(place).reading() as client:
        with measuring(calls=calls):
            answers = await client.query(order_nos=order_numbers(calls))
            counted(len(answers.found), calls=calls)


@dataclass(frozen=True, slots=True)
class _Record:
    """One row that was checked."""

    order_no: str
    transaction_id: str
    currency: str
    amount: Decimal
    payment_status: str
    reference_no: str
    transaction_at: datetime


def _checked(row: dict[str, Any], *, asked: set[str]) -> _Record:
    order_no, transaction_id, date = row["order_no"], row["transaction_id"], row["transaction_date"]
    amount, currency = row["amount"], row["currency"]
    if order_no not in asked or not _ID.fullmatch(transaction_id):
        raise ValueError(order_no)
    if not (_AMOUNT.fullmatch(amount) and _CURRENCY.fullmatch(currency)):
        raise ValueError(order_no)
    if row["query_result"] not in _CODES or not _DATE.fullmatch(date):
        raise ValueError(order_no)
    at = datetime.fromisoformat(f"{date[:8]}T{date[8:]}").replace(tzinfo=UTC)
    status, reference = row["payment_status"], row["reference_no"]
    return _Record(order_no, transaction_id, currency, Decimal(amount), status, reference, at)


def body_of(group: Sequence[str]) -> tuple[bytes, str]:
    """One signed request, and its signature."""
    signature = hashlib.sha256(f"{MERCHANT}{ACCOUNT}{KEY}".encode()).hexdigest()
    fields = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "orders": ",".join(group)}
    return urlencode(fields | {"encryption_data": signature}).encode(), signature


async def by_aiohttp(url: str, *, calls: int, in_flight: int) -> None:
    """The calls by aiohttp and orjson."""
    import aiohttp
    import orjson

    keys = order_numbers(calls)
    groups = iter([keys[first : first + GROUP] for first in range(0, len(keys), GROUP)])
    records: list[_Record] = []
    headers = {"content-type": "application/x-www-form-urlencoded"}

    async def worker(session: aiohttp.ClientSession) -> None:
        for group in groups:
            body, signature = body_of(group)
            async with session.post(f"{url}/v1/retrievalTrans", data=body) as response:
                reply = orjson.loads(await response.read())
            if reply["return_status"] != "1" or reply["encryption_data"] != signature:
                raise ValueError(reply["return_message"])
            if (reply["merchant_id"], reply["account_id"]) != (MERCHANT, ACCOUNT):
                raise ValueError(reply["merchant_id"])
            asked = set(group)
            records.extend(_checked(row, asked=asked) for row in reply["orders_list"])

    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        with measuring(calls=calls):
            await asyncio.gather(*(worker(session) for _ in range(in_flight)))
            counted(len(records), calls=calls)


CONTENDERS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "ours": ours,
    "aiohttp": by_aiohttp,
}


@contextmanager
def measuring(*, calls: int) -> Iterator[None]:
    """Print the CPU and wall time of what stands inside: connecting and settings are not."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"calls": calls, "wall": wall, "cpu": cpu}))


def counted(orders: int, *, calls: int) -> None:
    """Refuse a round in which not every order was answered: its figures mean nothing."""
    if orders != calls * GROUP:
        message = f"{orders} of {calls * GROUP} orders were answered"
        raise SystemExit(message)


def main(name: str, url: str, calls: str, in_flight: str) -> None:
    """Run one contender twice; the first time warms up, the second counts."""
    for rounds in (20, int(calls)):
        asyncio.run(CONTENDERS[name](url, calls=rounds, in_flight=int(in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
