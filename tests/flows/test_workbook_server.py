"""Workbooks over HTTP: who gets one, and what nobody gets, by a real server and real requests."""

import base64
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
import uvicorn

from flows.workbook_server import create_app, link_of, serve_until_ended
from recon.model.errors import ConfigurationError
from recon.notifications.receiver_server import listening
from recon.privacy.own_servers import server_config

AUTH = "recon:a-long-word"
ACCOUNT = "100042/100042001"
NAME = "reconciliation-100042-100042001-2026-11-20.xlsx"
SIGNED_IN = {"Authorization": "Basic " + base64.b64encode(AUTH.encode()).decode()}
SECRET = b"PK another account's"


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A reports folder, and beside it what is not for everybody."""
    folder = tmp_path / "reports"
    (folder / "metrics").mkdir(parents=True)
    (folder / NAME).write_bytes(b"PK the workbook")
    (tmp_path / "secret.xlsx").write_bytes(SECRET)
    for name in ("history-head.jsonl", ".hidden.xlsx", "metrics/run.xlsx"):
        (folder / name).write_bytes(SECRET)
    (folder / "link.xlsx").symlink_to(tmp_path / "secret.xlsx")
    (folder / "folder.xlsx").mkdir()
    os.mkfifo(folder / "pipe.xlsx")
    return folder


@pytest.fixture
def port(reports: Path) -> Iterator[int]:
    """Where a server of it listens."""
    with listening("127.0.0.1", port=0) as listener:
        server = uvicorn.Server(server_config(create_app({ACCOUNT: reports}, auth=AUTH)))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        serving.start()
        yield int(listener.getsockname()[1])
        server.should_exit = True
        serving.join()


def asked(
    port: int, path: str, *, method: str = "GET", headers: Mapping[str, str] = SIGNED_IN
) -> tuple[HTTPResponse, bytes]:
    """The reply to a path as it is: no client of ours makes it tidy."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers=dict(headers))
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def test_who_is_signed_in_gets_the_workbook_as_a_file(port: int) -> None:
    """The bytes under their name and type, kept by no cache and readable by no other page."""
    reply, body = asked(port, f"/{ACCOUNT}/{NAME}")

    assert (reply.status, body) == (200, b"PK the workbook")
    assert reply.headers["Content-Type"].endswith("spreadsheetml.sheet")
    assert reply.headers["Content-Disposition"] == f'attachment; filename="{NAME}"'
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_a_look_without_the_bytes_says_how_many_there_are(port: int) -> None:
    """HEAD, as download managers ask."""
    reply, body = asked(port, f"/{ACCOUNT}/{NAME}", method="HEAD")

    assert (reply.status, body, reply.headers["Content-Length"]) == (200, b"", "15")


WRONG = {
    "nothing": {},
    "another password": {"Authorization": "Basic " + base64.b64encode(b"recon:x").decode()},
    "no base64": {"Authorization": "Basic %%%"},
    "as a token": {"Authorization": SIGNED_IN["Authorization"].replace("Basic", "Bearer")},
    "empty": {"Authorization": "Basic "},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("path", [f"/{ACCOUNT}/{NAME}", "/", "/100042/nobody/x.xlsx"])
def test_nobody_else_learns_whether_there_is_one(
    port: int, path: str, headers: Mapping[str, str]
) -> None:
    """Asked for the password, whatever the path."""
    reply, body = asked(port, path, headers=headers)

    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert b"PK" not in body


@pytest.mark.parametrize(
    "path",
    [
        f"/{ACCOUNT}/../secret.xlsx",
        f"/{ACCOUNT}/..%2Fsecret.xlsx",
        f"/{ACCOUNT}/%2e%2e%2fsecret.xlsx",
        f"/{ACCOUNT}/..%5csecret.xlsx",
        f"/{ACCOUNT}%2F../secret.xlsx",
        f"/{ACCOUNT}/link.xlsx",
        f"/{ACCOUNT}/folder.xlsx",
        f"/{ACCOUNT}/pipe.xlsx",
        f"/{ACCOUNT}/.hidden.xlsx",
        f"/{ACCOUNT}/metrics/run.xlsx",
        f"/{ACCOUNT}/history-head.jsonl",
        f"/{ACCOUNT}/{NAME}%00.jsonl",
        f"/{ACCOUNT}/",
        "/100042/100042002/" + NAME,
        "/",
    ],
)
def test_nothing_but_a_workbook_of_the_folder_itself_is_handed_out(port: int, path: str) -> None:
    """No way up, no link, no pipe that is waited for, no hidden file, no other kind of file."""
    reply, body = asked(port, path)

    assert (reply.status, body) == (404, b"there is no such workbook")


@pytest.mark.parametrize("mode", ["cors", "no-cors", "websocket", "same-origin"])
def test_a_page_reads_none(port: int, mode: str) -> None:
    """A browser that remembers the password sends it along for a page's script, too: refused."""
    reply, body = asked(port, f"/{ACCOUNT}/{NAME}", headers={**SIGNED_IN, "Sec-Fetch-Mode": mode})

    assert (reply.status, b"PK" in body) == (403, False)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_is_taken_or_changed(port: int, reports: Path, method: str) -> None:
    """The server only reads."""
    reply, _ = asked(port, f"/{ACCOUNT}/{NAME}", method=method)

    assert reply.status == 405
    assert (reports / NAME).read_bytes() == b"PK the workbook"


@pytest.mark.parametrize("auth", ["", "recon", "recon:"])
def test_without_a_password_nothing_is_served(reports: Path, auth: str) -> None:
    """It ends before it listens, and names the variables."""
    with pytest.raises(ConfigurationError, match="PREFECT_API_AUTH_STRING"):
        serve_until_ended({ACCOUNT: reports}, auth=auth, at=("127.0.0.1", 0), ready=print)


def test_a_port_that_is_taken_is_named(reports: Path) -> None:
    """With the way out."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        at = ("127.0.0.1", other.getsockname()[1])
        with pytest.raises(ConfigurationError, match="name another"):
            serve_until_ended({ACCOUNT: reports}, auth=AUTH, at=at, ready=print)


def test_an_artifact_links_to_where_the_workbook_is_served() -> None:
    """The file itself where nobody serves it."""
    path, account = Path("/var/reports") / NAME, ("100042", "100042001")

    assert link_of(path, account=account, address="") == f"file:///var/reports/{NAME}"
    assert (
        link_of(path, account=account, address="https://recon.example/")
        == f"https://recon.example/{ACCOUNT}/{NAME}"
    )
