"""A desk in a process of its own that echoes what it hears."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ECHO = """
import sys
from pathlib import Path
from recon.desk.server import serve_until_ended
from recon.model.errors import GateClosedError
from recon.privacy import own_servers

own_servers.HEAD_SECONDS_MAX, own_servers.BODY_SECONDS_MAX = map(float, sys.argv[2:])

def hear(act, body, origin):
    if act == "closed":
        raise GateClosedError("the gate is closed")
    if act == "broken":
        raise RuntimeError("card 4111111111111111")
    return {"act": act, "body": body, "origin": origin}

serve_until_ended(Path(sys.argv[1]), carry_out=hear, ready=lambda at: print(at, flush=True))
"""
HEAD_SECONDS_MAX, BODY_SECONDS_MAX = 2.0, 4.0
"""Of this desk: what it does with who is slow, without the wait."""


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its socket; one desk hears a whole module, and each request must leave it as it was."""
    path = tmp_path_factory.mktemp("desk") / "desk.sock"
    limits = map(str, (HEAD_SECONDS_MAX, BODY_SECONDS_MAX))
    with subprocess.Popen(
        [sys.executable, "-c", ECHO, str(path), *limits], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().strip() == str(path)
        yield path
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, "what is open is closed first"
        assert not path.exists()
