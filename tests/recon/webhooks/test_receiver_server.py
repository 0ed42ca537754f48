import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from recon.model.errors import ConfigurationError
from recon.webhooks.receiver import FORM_BYTES_MAX, listening
from tests.recon.webhooks.told import ACCOUNT, MERCHANT, PAYMENT, form

ADDRESS = f"/notifications/{MERCHANT}/{ACCOUNT}"
IDLE_SECONDS_MAX = 15
RECEIVER = """
from recon.cli import main
from recon.privacy import own_servers

own_servers.HEAD_SECONDS_MAX = own_servers.KEEP_ALIVE_SECONDS = 2
main()
"""
"""With less patience than operators get: tests wait for its end."""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def port(tmp_path_factory, migrated):
    """`recon serve notifications` as a process of its own, which hears a whole module."""
    folder = tmp_path_factory.mktemp("receiver")
    (folder / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\ninbox = "in"\nreports = "out"\n'
    )
    variables = {
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_SIGN_KEY": "sandbox",
        "RECON_DATABASE_URL": f"sqlite:///{shutil.copy(migrated, folder / 'recon.sqlite')}",
        "RECON_CONFIG_DIR": str(folder),
    }
    words = [sys.executable, "-c", RECEIVER, "serve", "notifications", "--port", "0"]
    with subprocess.Popen(
        words, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
    ) as process:
        first = process.stdout.readline().strip()
        assert process.stdout.readline().strip() == f"{first}{ADDRESS}"
        yield int(first.rsplit(":", 1)[1])
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def ask(port, *, method, path, body=b""):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, FORM)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@pytest.mark.process
def test_a_message_over_http_is_acknowledged_with_the_word(port):
    assert ask(port, method="POST", path=ADDRESS, body=form(PAYMENT)) == (200, "success")
    assert ask(port, method="POST", path=ADDRESS, body=form(PAYMENT, key="x"))[0] == 401
    assert ask(port, method="GET", path=ADDRESS)[0] == 405
    assert ask(port, method="POST", path="/notifications/1/2", body=form(PAYMENT))[0] == 404
    big = b"a=" + b"x" * FORM_BYTES_MAX
    assert ask(port, method="POST", path=ADDRESS, body=big)[0] == 413
    assert ask(port, method="GET", path="/health") == (200, "ok")


def test_an_address_in_use_is_named():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigurationError, match="cannot be used"),
    ):
        listening("127.0.0.1", port=taken.getsockname()[1])


def _end_of(one):
    """What the other side says last; nothing when it hung up."""
    try:
        return one.recv(1_000)
    except ConnectionResetError:
        return b""


@pytest.mark.process
def test_a_connection_that_is_kept_open_is_used_and_closed_in_time(port):
    with ExitStack() as stack:
        saved = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(20)]
        for connection in saved:
            stack.callback(connection.close)
            for _ in range(3):
                connection.request("POST", ADDRESS, form(PAYMENT), FORM)
                assert connection.getresponse().read() == b"success"
        began = time.monotonic()
        sockets = [connection.sock for connection in saved]
        assert [each is not None and _end_of(each) for each in sockets] == [b""] * len(saved)
        assert time.monotonic() - began < IDLE_SECONDS_MAX
        assert ask(port, method="POST", path=ADDRESS, body=form(PAYMENT))[0] == 200
