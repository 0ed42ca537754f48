"""What the approval form leaves behind, and what it must not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.approve import approve
from flows.prefect_server import PrefectServer
from recon.store.migrate import upgrade

CODE = "918273"
PROGRAM = """
import sys
from pydantic import SecretStr
from flows.approve import Decision, approve
state = approve(Decision(sys.argv[1]), sys.argv[2], sys.argv[3], SecretStr(sys.argv[4]),
                return_state=True)
print(state.name, "|", state.message)
"""


def test_the_form_starts_by_only_looking() -> None:
    """Whoever just submits the form has decided nothing, and Prefect never repeats a decision."""
    assert approve.retries == 0
    assert approve.persist_result is False
    assert approve.parameters.properties["decision"]["default"] == "show"


@pytest.fixture
def variables(tmp_path: Path, server: PrefectServer) -> dict[str, str]:
    """An empty database with one declared person, and the server of all flow tests."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "approvers.toml").write_text(
        '[approvers.anna]\nname = "Anna Berg"\ncode_secret_env = "CODE_ANNA"\n'
    )
    url = f"sqlite:///{tmp_path / 'recon.sqlite'}"
    upgrade(url)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT")},
        "PREFECT_API_URL": server.api_url,
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "RECON_DATABASE_URL": url,
        "RECON_CONFIG_DIR": str(tmp_path / "config"),
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_SIGN_KEY": "sandbox",
        "CODE_ANNA": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    }


def decided(variables: dict[str, str], *words: str) -> str:
    """The last state of a run of the form with these values."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.strip().splitlines()[-1]


@pytest.mark.flow
def test_looking_at_an_empty_list_is_an_answer(variables: dict[str, str]) -> None:
    """Nothing waits: the run says so and ends well."""
    assert decided(variables, "show", "", "", CODE).startswith("Shown | Waits: 0 instructions")


@pytest.mark.flow
def test_a_code_given_in_the_form_is_kept_nowhere(
    variables: dict[str, str], server: PrefectServer
) -> None:
    """A wrong code is refused in words, and no table of Prefect has it in clear."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.sorting import FlowRunSort

    last = decided(variables, "approve", "0" * 16, "anna", CODE)
    with SyncPrefectClient(server.api_url) as client:
        (run,) = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
    kept = [path.read_bytes() for path in server.home.rglob("*") if path.is_file()]

    assert "not right" in last
    assert CODE not in json.dumps(run.model_dump(mode="json"))
    assert not any(CODE.encode() in content for content in kept)
