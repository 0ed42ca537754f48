import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.model.errors import ConfigurationError
from recon.sandbox import SandboxOptions, serving
from recon.sandbox.server import start_lines

SERVE = "from recon.sandbox import SandboxOptions, serve; serve(SandboxOptions(orders=20))"


@pytest.mark.process
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_it_is_and_ends_on_a_signal(stop: signal.Signals) -> None:
    """The base URL alone on line 1, then KEY=VALUE lines; it accepts by then and ends with 0."""
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline().strip() for _ in range(5)]
        base_url = lines[0]
        assert httpx.get(f"{base_url}/_sandbox/health", trust_env=False).status_code == 200
        run.send_signal(stop)
        assert run.wait(10) == 0
    assert lines[1:] == [
        f"RECON_GATEWAY_BASE_URL={base_url}",
        "RECON_SIGN_KEY=sandbox",
        "RECON_MERCHANT=100042",
        "RECON_ACCOUNT=100042001",
    ]


@pytest.mark.process
def test_what_was_answered_survives_a_killed_process(gateway: Any, tmp_path: Path) -> None:
    """Effects are on disk before their reply leaves: SIGKILL loses none."""
    state = tmp_path / "s.sqlite"
    served = (
        "from pathlib import Path; from recon.sandbox import SandboxOptions, serve;"
        f" serve(SandboxOptions(orders=20, state=Path({str(state)!r})))"
    )
    with subprocess.Popen([sys.executable, "-c", served], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        client = type(gateway)(run.stdout.readline().strip())
        with client.http:
            client.row("capture", client.authorised()[0])
            told = client.effects()
        run.kill()
    with serving(SandboxOptions(state=state)) as sandbox:
        client = type(gateway)(sandbox.base_url)
        with client.http:
            assert client.effects() == told
            assert len(told) == 1


def test_start_lines_follow_the_options() -> None:
    """Another merchant's lines name that merchant."""
    lines = start_lines(
        SandboxOptions(merchant="7", account="8", sign_key="k"), base_url="http://x"
    )
    assert lines[0] == "http://x"
    assert "RECON_MERCHANT=7" in lines
    assert "RECON_SIGN_KEY=k" in lines


def test_a_port_in_use_is_named() -> None:
    """The message names the port and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigurationError, match=f"port {port} .* name another"),
            serving(SandboxOptions(port=port, orders=0)),
        ):
            pass


def test_a_state_that_is_no_sandbox_is_refused(tmp_path: Path) -> None:
    """A file of another kind, of another merchant, or in no folder: named, never overwritten."""
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be read as one by mistake" * 20)
    before = text.read_bytes()
    with (
        pytest.raises(ConfigurationError, match=r"notes\.txt"),
        serving(SandboxOptions(state=text)),
    ):
        pass
    assert text.read_bytes() == before
    with (
        pytest.raises(ConfigurationError, match="nowhere"),
        serving(SandboxOptions(state=tmp_path / "nowhere" / "s.sqlite")),
    ):
        pass
    state = tmp_path / "s.sqlite"
    with serving(SandboxOptions(state=state, orders=5)):
        assert state.exists()
    with (
        pytest.raises(ConfigurationError, match="belongs to merchant 100042"),
        serving(SandboxOptions(state=state, merchant="7")),
    ):
        pass


def test_a_port_can_be_chosen(running: object) -> None:
    """The port that is asked for is the one that is served."""
    assert running is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(SandboxOptions(port=port, orders=0)) as sandbox:
        assert sandbox.base_url == f"http://127.0.0.1:{port}"
