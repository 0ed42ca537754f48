"""What a program that Prefect's worker was made to run finds of the sign key: nothing."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from flows import serve
from flows.serve import key_set_apart
from recon.config.keys import SIGNER_VARIABLE
from recon.gateway_client import UnsignedError
from recon.gateway_client.interface import SignedMessage
from recon.instructions.account import SignerSocket
from tests.flows.flow_in_process import without_prefect

KEY = "the-sign-key-canary-of-make-serve-41c0"
ACCOUNT = "100042/100042001"
NOBODY = 65534
LOOK = """
import json, os, sys
from pathlib import Path
key, found, uid = sys.argv[1].encode()[::-1], [], int(sys.argv[2])
if uid:  # dropped here: the interpreter may lie where only its owner may start it
    os.setgroups([]), os.setgid(uid), os.setuid(uid)
if any(key in value for value in os.environb.values()):
    found.append("environment")
for root in sys.argv[3:]:
    for path in sorted(Path(root).rglob("*")):
        try:
            if path.is_file() and key in path.read_bytes():
                found.append(str(path))
        except OSError:
            continue
for path in Path("/proc").glob("[0-9]*/environ"):
    try:
        if key in path.read_bytes():
            found.append(str(path.parent / "environ"))
    except OSError:
        continue
print(json.dumps(found))
"""
"""As a run's code looks for the key (told backwards, so that it does not find itself)."""


@pytest.fixture
def folder():
    """As `make serve` has one after the demo's files were made, but with a key of its own."""
    with tempfile.TemporaryDirectory(prefix="serve-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        config = folder / "demo" / "config"
        config.mkdir(parents=True)
        (folder / "demo").chmod(0o755)  # a command in this process may have set its umask
        (config / "merchants.toml").write_text(
            f'[accounts."{ACCOUNT}"]\ninbox = "/inbox"\nreports = "/reports"\n'
        )
        (folder / "demo" / "env").write_text(
            f"RECON_SIGN_KEY={KEY}\nRECON_GATEWAY_BASE_URL=http://127.0.0.1:1\n"
            f"RECON_CONFIG_DIR={config}\nRECON_DATABASE_URL=sqlite:///{folder}/recon.sqlite\n"
        )
        yield folder
        serve.stop(folder)


def looked(folder, variables, *, uid=0):
    """Where a program finds the key that is started as the worker's programs are."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK, KEY[::-1], str(uid), str(folder)],
        env={**without_prefect(os.environ), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    places: list[str] = json.loads(ran.stdout)
    return places


def started(folder):
    """The variables of a worker beside which a signer runs."""
    env = folder / "demo" / "env"
    before = serve.read_env(env)
    # The attack of the issue, as long as the worker had the key.
    assert "environment" in looked(folder, before)
    assert str(env) in looked(folder, before)
    variables = key_set_apart(folder / "signer", env=env, variables=before)
    signer = [*serve.RECON, "serve", "signer", "--rules", str(folder / "signer" / "signer.toml")]
    is_up = Path(variables["RECON_SIGNER"]).is_socket
    serve._start(folder, name="signer", command=signer, is_up=is_up)
    return variables


# The programs are meant to outlive their handles: ending goes by what was written down.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_no_environment_holds_the_key_and_one_file_does(folder):
    variables = started(folder)
    assert looked(folder, variables) == [str(folder / "signer" / "key")]
    assert (folder / "signer" / "key").stat().st_mode & 0o777 == 0o600
    assert KEY not in str(serve.read_env(folder / "demo" / "env"))
    for _, process in serve._running(folder):
        assert KEY not in str(psutil.Process(process.pid).environ())


def test_another_users_worker_finds_no_key_at_all(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can start a program as another user")
    variables = started(folder)
    loose = folder / "demo" / "loose"
    loose.write_text(KEY)
    loose.chmod(0o644)
    assert looked(folder, variables, uid=NOBODY) == [str(loose)]
    loose.chmod(0o600)
    assert looked(folder, variables, uid=NOBODY) == []
    socket = SignerSocket(Path(variables[SIGNER_VARIABLE]), retry_seconds=0)
    merchant, _, account = ACCOUNT.partition("/")
    wanted = SignedMessage(template="payout", merchant_id=merchant, account_id=account, fields={})
    assert socket.sign(
        SignedMessage(
            template="retrievalTrans", merchant_id=merchant, account_id=account, fields={}
        )
    )
    with pytest.raises(UnsignedError, match="the signer refused"):
        socket.sign(wanted)
