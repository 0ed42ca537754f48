"""From the sandbox over real HTTP to the receiver, into the database: evidence and cases."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from recon.sandbox import SandboxOptions, serving
from recon.webhooks.receiver import create_app, listening
from tests.recon.sandbox.conftest import Caller
from tests.recon.sandbox.test_notifications import told
from tests.recon.webhooks.test_receiver import receiver as declared_receiver
from tests.recon.webhooks.test_receiver import rows
from tests.recon.webhooks.test_receiver import store as empty_store

store, receiver = empty_store, declared_receiver


@pytest.fixture
def port(receiver):
    """The receiver on a socket of its own."""
    config = uvicorn.Config(create_app(receiver), lifespan="off", log_level="error", ws="none")
    server = uvicorn.Server(config)
    with listening("127.0.0.1", port=0) as listener:
        run = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        run.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        run.join(10)


@contextmanager
def sandbox_telling(port):
    """A client of a sandbox that tells our receiver."""
    url = f"http://127.0.0.1:{port}/notifications/{{merchant_id}}/{{account_id}}"
    with serving(SandboxOptions(orders=30, notify_url=url)) as running:
        gateway = Caller(running.base_url)
        with gateway.http:
            yield gateway


def test_what_the_sandbox_tells_becomes_evidence(port, store):
    with sandbox_telling(port) as gateway:
        gateway.faults({"kind": "notify_twice", "operation": "authorise"})
        gateway.authorise(order_no="n-1")
        paid = gateway.captured()[0]
        gateway.row("refund", paid | {"refund_amount": "1.00", "refund_reference": "ours-1"})
        gateway.pass_days(2)
        assert {one["state"] for one in told(gateway)} == {"acknowledged"}
    saved = {row["kind"]: row for row in rows(store, "notification")}
    assert set(saved) == {"payment", "refund received", "refund accepted", "refund result"}
    assert (saved["payment"]["order_no"], saved["payment"]["times"]) == ("n-1", 2)
    assert saved["refund result"]["transaction_id"] == paid["transaction_id"]
    assert rows(store, "notification_case") == []
