"""The desk's socket: who may connect, who asks, and what is no request."""

import os
import socket
import stat
import time
from contextlib import ExitStack

import httpx
import pytest

from recon.desk.server import UNEXPECTED, ask_desk, listening
from recon.model.errors import ConfigurationError, GateClosedError, UsageError


def post(path, act, content):
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        return client.post(f"http://desk/{act}", content=content)


def test_the_kernel_says_who_asks(echo):
    """Whatever a request claims, its origin is the login at the other end."""
    told = post(echo, "approve", b'{"origin": "login 0", "list": "x"}').json()
    assert told["origin"] == f"login {os.geteuid()}"
    assert (told["act"], told["body"]["list"]) == ("approve", "x")


def test_only_owner_and_group_may_connect(echo):
    """Nobody else of the machine speaks to the desk."""
    assert stat.S_IMODE(echo.stat().st_mode) == 0o660


DEEP = {"a deep list": b"[" * 100_000, "deep objects": b'{"a":' * 100_000}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"1",
        b"null",
        *(pytest.param(DEEP[name], id=name) for name in DEEP),
    ],
)
def test_what_is_no_object_is_refused(echo, content):
    """In words, and the desk goes on."""
    reply = post(echo, "approve", content)
    assert (reply.status_code, "no JSON object" in reply.json()["error"]) == (400, True)
    assert post(echo, "approve", b"{}").status_code == 200


def test_a_foreign_error_is_never_quoted(echo):
    """Its text may hold anything."""
    assert post(echo, "broken", b"{}").json()["error"] == UNEXPECTED


def test_a_second_desk_at_the_same_place_is_refused(echo):
    """Two desks would count guesses twice."""
    with pytest.raises(ConfigurationError, match="another process listens for the desk"):
        listening(echo)


def connected(stack, path, *, endorsements=b""):
    """An open connection that has said this much."""
    made = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    made.connect(str(path))  # waits its turn, as one with a time limit does not
    made.settimeout(30)
    made.sendall(endorsements)
    return made


def end_of(connection):
    """What the desk says last; nothing when it hung up."""
    try:
        endorsements = connection.recv(1_000)
        if endorsements.endswith(b"\r\n\r\n"):  # the head alone: what it says comes behind it
            endorsements += connection.recv(1_000)
    except ConnectionResetError:
        return b""
    return endorsements


def test_connections_that_say_nothing_keep_nobody_away(echo):
    """A hundred that are silent, or stop inside a line: others are heard, and they end."""
    with ExitStack() as stack:
        half = b"POST /approve HTTP/1.1\r\nHost: x\r\nA: "
        silent = [connected(stack, echo, endorsements=half * (number % 2)) for number in range(100)]
        assert post(echo, "approve", b"{}").status_code == 200
        began = time.monotonic()
        assert [end_of(one) for one in silent] == [b""] * 100
        assert time.monotonic() - began < 15


def test_the_desk_replies(echo):
    assert ask_desk(echo, "approve", body={"list": "ä"})["body"] == {"list": "ä"}


def test_a_refusal_keeps_its_kind(echo):
    """The command ends with the exit code that the desk's own error has."""
    with pytest.raises(GateClosedError, match="the gate is closed"):
        ask_desk(echo, "closed", body={})


def test_without_a_desk_nothing_is_changed(tmp_path):
    """And the sentence says what to start."""
    with pytest.raises(UsageError, match="recon serve desk"):
        ask_desk(tmp_path / "none.sock", "approve", body={})


def test_bodies_that_come_slowly_or_are_large_keep_nobody_away(echo):
    """They are bounded in size, time, and in how many are in memory at once."""
    head = b"POST /approve HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    with ExitStack() as stack:
        large = [
            connected(stack, echo, endorsements=head % (60 * 1024 * 1024) + b" " * 2_000_000)
            for _ in range(2)
        ]
        slow = connected(stack, echo, endorsements=head % 10 + b"{")
        assert post(echo, "approve", b"{}").status_code == 200
        assert b"took too long" in end_of(slow)
        assert [b"400" in end_of(one) for one in large] == [True, True]
    assert post(echo, "approve", b"{" + b" " * 65 * 1024 * 1024).status_code == 400
    assert post(echo, "approve", b"{}").status_code == 200
