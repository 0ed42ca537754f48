"""Files to download: the same bytes for the same seed, and what truly happened until then.

That they tie and that their key tells the truth: `tests/recon/cli/test_demo_answer_key.py`.
"""

import hashlib
from typing import Any

import httpx

from recon.sandbox import SandboxOptions, serving

DAY = "2026-11-20"
ACCOUNT = "100042001"


def download(gateway: Any, name: str, *, day: str = DAY, account: str = ACCOUNT) -> Any:
    """One file."""
    return gateway.http.get(f"/_sandbox/files/{account}/{day}/{name}")


def capture_some(gateway: Any) -> list[dict[str, str]]:
    """Let eight captures and two refunds happen on the day that is settled."""
    rows = [row for row in gateway.authorised() if row["currency"] == "EUR"][:8]
    gateway.batch("capture", rows)
    refunds = [row | {"refund_amount": "1.00", "refund_reason": "r"} for row in rows[:2]]
    gateway.batch("refund", refunds)
    return rows


def test_the_same_seed_gives_the_same_files() -> None:
    """Two sandboxes of one seed hand out the same bytes, one of another seed others."""
    digests = []
    for seed in (7, 7, 8):
        with serving(SandboxOptions(orders=120, seed=seed)) as sandbox:
            app_files = {}
            names = (f"ledger-{DAY}.csv", f"settlement-{DAY}.csv", f"answer-key-{DAY}.json")
            for name in (*names, f"settlement-before-{DAY}.csv", f"statements-main-{DAY}.xml"):
                app_files[name] = fetched(sandbox.base_url, name)
            joined = b"".join(app_files[name] for name in sorted(app_files))
            digests.append(hashlib.sha256(joined).hexdigest())
    assert digests[0] == digests[1] != digests[2]


def fetched(base_url: str, name: str) -> bytes:
    """The bytes of one file."""
    reply = httpx.get(f"{base_url}/_sandbox/files/{ACCOUNT}/{DAY}/{name}", trust_env=False)
    return reply.raise_for_status().content


def test_files_follow_the_truth(gateway: Any) -> None:
    """What takes effect between two downloads stands in the second one; a reset takes it back."""
    name = f"settlement-{DAY}.csv"
    first = download(gateway, name).text
    assert download(gateway, name).text == first
    capture_some(gateway)
    assert download(gateway, name).text.count("\n") > first.count("\n")
    gateway.http.post("/_sandbox/reset").raise_for_status()
    assert download(gateway, name).text == first
