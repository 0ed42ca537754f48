"""A gateway that does its work and quotes what nobody should keep, all over its replies."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from tests.loopback import Answer, answering

CARD = "4929780164523877"
GROUPED_CARD = "4929 7801 6452 3877"
CODE = "9173"
IBAN = "DE89370400440532013000"
DOCUMENT = "4417119900"
BIRTH_DATE = "1980-02-29"
NAME = "Quill"
FIELDS = {
    "card": CARD,
    "security_code": CODE,
    "iban": IBAN,
    "document": DOCUMENT,
    "birth_date": BIRTH_DATE,
    "last_name": NAME,
    "note": f"paid with {GROUPED_CARD} from {IBAN} cvc:{CODE}",
    f"of {CARD}": "a name that is a secret",
}
"""What stands in every object of a reply beside its own fields."""
DASHED_CARD = "4929\u20117801\u20116452\u20113877"
FOREIGN_CARD = "".join(chr(0x0660 + int(digit)) for digit in CARD)
SIGN_KEY = "the-sign-key-canary-6e1f"
QUOTED = f" (card {GROUPED_CARD} or {DASHED_CARD} or x{CARD}y or {FOREIGN_CARD}, account {IBAN},"
QUOTED += f" cvv {CODE}, {CODE} is not the security code, signed 100042EUR10{SIGN_KEY})"
TEXTS = frozenset({"return_message", "error_message", "refund_message", "failure_reason"})


@dataclass
class LeakingGateway:
    """Where it listens, and how often it answered each operation."""

    base_url: str
    answered: Counter[str] = field(default_factory=Counter)


def leaked(value: Any) -> Any:
    """A reply with the secrets in all its objects and texts."""
    if isinstance(value, list):
        return [leaked(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = {
        name: f"{part}{QUOTED}" if name in TEXTS else leaked(part) for name, part in value.items()
    }
    return FIELDS | own


def answer(operation: str, nth: int, body: bytes) -> tuple[int, bytes]:
    """Status and body of the n-th reply of an operation; some are an error, some cannot be read."""
    reply = json.dumps(leaked(json.loads(body))).encode()
    if operation == "retrievalTrans" and nth == 1:
        return 500, reply
    return 200, reply[:-1] if operation == "cancelsubscription" else reply


@contextmanager
def leaking(behind: str) -> Iterator[LeakingGateway]:
    """Stands before the gateway at the base URL `behind`."""

    def reply(request: BaseHTTPRequestHandler, sent: bytes) -> Answer:
        content_type = request.headers["Content-Type"]
        status, body = _forwarded(behind, request.path, sent, content_type)
        operation = request.path.rpartition("/")[2]
        gateway.answered[operation] += 1
        if status == 200:
            status, body = answer(operation, gateway.answered[operation], body)
        request.responses = {status: (f"card {CARD}", "")}  # the reason of the first line
        return status, {"X-Card": CARD}, body

    with answering(reply) as url:
        gateway = LeakingGateway(url)
        yield gateway


def _forwarded(behind: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(behind).netloc, timeout=10)
    try:
        connection.request("POST", path, body, {"Content-Type": content_type})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()
