"""Files to download: the same bytes for the same seed, and an answer key that tells the truth."""

import csv
import hashlib
import io
from collections import Counter
from decimal import Decimal
from typing import Any

import httpx

from recon.sandbox import SandboxOptions, serving

DAY = "2026-11-20"
ACCOUNT = "100042001"


def download(gateway: Any, name: str, *, day: str = DAY, account: str = ACCOUNT) -> Any:
    """One file."""
    return gateway.http.get(f"/_sandbox/files/{account}/{day}/{name}")


def rows_in(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(text)))


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


def test_a_settlement_ties_within_itself(gateway: Any) -> None:
    """Net is gross less fee on every line, each pay-out the sum of its lines."""
    capture_some(gateway)
    rows = rows_in(download(gateway, f"settlement-{DAY}.csv").text)
    sums: Counter[tuple[str, str]] = Counter()
    for row in rows:
        assert Decimal(row["gross"]) - Decimal(row["fee"]) == Decimal(row["net"])
        kind = "payout" if row["entry_type"] == "payout" else "lines"
        sums[kind, row["currency"]] += Decimal(row["net"])
    currencies = {row["currency"] for row in rows}
    assert "EUR" in currencies
    for currency in currencies:
        assert sums["payout", currency] == sums["lines", currency]


def test_the_answer_key_names_every_difference_between_settlement_and_truth(gateway: Any) -> None:
    """Found by comparing the file with the effects, without a look at the key."""
    capture_some(gateway)
    shown = {
        (row["entry_type"], row["transaction_id"], row["reference_no"]): row["gross"]
        for row in rows_in(download(gateway, f"settlement-{DAY}.csv").text)
        if row["entry_type"] != "payout"
    }
    true = {
        (row["operation"], row["transaction_id"], row["refund_reference_id"]): row["amount"]
        for origin in ("seed", "api")
        for row in gateway.effects(origin=origin)
        if row["committed_at"].startswith(DAY)
        and row["account_id"] == ACCOUNT
        and row["operation"] in {"capture", "refund", "chargeback"}
    }
    missing = {key[1] for key in true.keys() - shown.keys()}
    unknown = {key[1] for key in shown.keys() - true.keys()}
    other = {
        key[1]
        for key in true.keys() & shown.keys()
        if abs(Decimal(shown[key])) != Decimal(true[key])
    }
    planted = download(gateway, f"answer-key-{DAY}.json").json()["settlement"]
    by_code = {one["code"]: one["true"] or one["shown"] for one in planted}
    assert {by_code["SETTLEMENT_MISSING"]["transaction_id"]} == missing
    assert {by_code["UNEXPECTED_RECEIPT"]["transaction_id"]} == unknown
    assert {by_code["SETTLEMENT_AMOUNT_MISMATCH"]["transaction_id"]} == other
    assert "FEE_VARIANCE" in by_code


def test_files_follow_the_truth(gateway: Any) -> None:
    """What takes effect between two downloads stands in the second one; a reset takes it back."""
    name = f"settlement-{DAY}.csv"
    first = download(gateway, name).text
    assert download(gateway, name).text == first
    capture_some(gateway)
    assert download(gateway, name).text.count("\n") > first.count("\n")
    gateway.http.post("/_sandbox/reset").raise_for_status()
    assert download(gateway, name).text == first
