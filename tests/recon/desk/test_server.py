"""The desk's socket: who may connect, who asks, and what is no request."""

import os
import socket
import stat
from pathlib import Path

import httpx
import pytest

from recon.desk.server import UNEXPECTED, listening
from recon.model.errors import ConfigurationError


def post(path: Path, act: str, content: bytes) -> httpx.Response:
    """One request over the socket."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        return client.post(f"http://desk/{act}", content=content)


def test_the_kernel_says_who_asks(echo: Path) -> None:
    """Whatever a request claims, its origin is the login at the other end."""
    told = post(echo, "approve", b'{"origin": "login 0", "list": "x"}').json()
    assert told["origin"] == f"login {os.geteuid()}"
    assert (told["act"], told["body"]["list"]) == ("approve", "x")


def test_only_owner_and_group_may_connect(echo: Path) -> None:
    """Nobody else of the machine speaks to the desk."""
    assert stat.S_IMODE(echo.stat().st_mode) == 0o660


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"1", b"null"])
def test_what_is_no_object_is_refused(echo: Path, content: bytes) -> None:
    """In words, and the desk goes on."""
    reply = post(echo, "approve", content)
    assert (reply.status_code, "no JSON object" in reply.json()["error"]) == (400, True)
    assert post(echo, "approve", b"{}").status_code == 200


def test_a_foreign_error_is_never_quoted(echo: Path) -> None:
    """Its text may hold anything."""
    assert post(echo, "broken", b"{}").json()["error"] == UNEXPECTED


def test_a_second_desk_at_the_same_place_is_refused(echo: Path) -> None:
    """Two desks would count guesses twice."""
    with pytest.raises(ConfigurationError, match="another desk listens"):
        listening(echo)


def test_a_socket_that_was_left_behind_is_made_anew(tmp_path: Path) -> None:
    """A desk that was killed does not keep the next one away."""
    path = tmp_path / "desk.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with listening(path):
        assert path.is_socket()


def test_a_file_is_not_replaced_by_a_socket(tmp_path: Path) -> None:
    """A misspelt name deletes nothing."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match="is no socket"):
        listening(path)
    assert path.read_text() == "mine"
