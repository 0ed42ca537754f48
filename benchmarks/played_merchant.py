"""A sandbox in a process of its own, and a merchant in an empty folder, for the benchmarks."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from recon.config.settings import load_tables
from recon.steps.runtime.environment import system_clock
from recon.store.database.migrate import upgrade

INBOX = "inbox"
PLACE = {"merchant_id": "100042", "account_id": "100042001"}


@contextmanager
def sandbox(orders: int) -> Iterator[str]:
    """A sandbox with so many payments, in a process of its own; its address."""
    code = (
        "from recon.sandbox import SandboxOptions\nfrom recon.sandbox.server import serve\n"
        f"serve(SandboxOptions(orders={orders}))"
    )
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()


def authorised(base_url: str) -> list[dict[str, str]]:
    """Payments of the account that can be captured."""
    with urllib.request.urlopen(f"{base_url}/_sandbox/payments") as reply:  # noqa: S310 - loopback
        rows = [json.loads(line) for line in reply.read().splitlines()]
    return [
        row
        for row in rows
        if row["state"] == "authorised" and row["account_id"] == PLACE["account_id"]
    ]


def night_command() -> list[str]:
    """How a process plays the first night of the account: the last business date that closed."""
    return command("nightly", "--opening", "--business-date", last_closed_date())


def last_closed_date() -> str:
    """The business date of that night."""
    return (system_clock() - timedelta(days=1)).date().isoformat()


def command(*arguments: str) -> list[str]:
    """How a process plays a command about the account."""
    account = ["--merchant", PLACE["merchant_id"], "--account", PLACE["account_id"]]
    start = "from recon.cli import main; raise SystemExit(main())"
    return [sys.executable, "-c", start, *arguments, *account]


def variables(folder: Path, base_url: str) -> dict[str, str]:
    """The environment of a merchant in an empty folder, with an inbox in it."""
    (folder / INBOX).mkdir(exist_ok=True)
    played = load_tables("sandbox", config_dir=None)
    rules = ["[gateway]", 'amount_means = "authorised"']
    for name in ("payment_status", "query_result"):
        rules += [f"[{name}]", *(f'{code} = "{word}"' for code, word in played[name].items())]
    (folder / "rules.toml").write_text("\n".join(rules))
    (folder / "gateway.toml").write_text("calls_per_second = 1000\n")
    (folder / "merchants.toml").write_text(
        f'[accounts."{PLACE["merchant_id"]}/{PLACE["account_id"]}"]\nname = "Northwind"\n'
        f'inbox = "{folder / INBOX}"\nreports = "{folder}"\nsettle_seconds = 0\n'
    )
    url = f"sqlite:///{folder / 'recon.sqlite'}"
    upgrade(url)
    return {
        "RECON_GATEWAY_BASE_URL": base_url,
        "RECON_SIGN_KEY": "sandbox",
        "RECON_DATABASE_URL": url,
        "RECON_CONFIG_DIR": str(folder),
    }


def post(base_url: str, what: str, document: dict[str, Any]) -> None:
    """Tell the sandbox something."""
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{base_url}/_sandbox/{what}", json.dumps(document).encode(), method="POST"
    )
    urllib.request.urlopen(request).close()  # noqa: S310 - loopback
