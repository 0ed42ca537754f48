"""Files to download, and business dates handed out one after the other, as a month goes on.

That they tie and that their key tells the truth: `tests/recon/cli/test_demo_answer_key.py`.
"""

import csv
import io
import json
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta

import httpx
import pytest

from recon.model.money import parse_signed_minor_units
from recon.sandbox import CLOCK_START, DEMO_BUSINESS_DATE, SandboxOptions, serving

DAY = DEMO_BUSINESS_DATE.isoformat()
ACCOUNT = "100042001"


def download(gateway, name, *, day=DAY, account=ACCOUNT):
    return gateway.http.get(f"/_sandbox/files/{account}/{day}/{name}")


def capture_some(gateway):
    """Let eight captures and two refunds happen on the day that is settled."""
    rows = [row for row in gateway.authorised() if row["currency"] == "EUR"][:8]
    gateway.batch("capture", rows)
    refunds = [row | {"refund_amount": "1.00", "refund_reason": "r"} for row in rows[:2]]
    gateway.batch("refund", refunds)
    return rows


def test_files_follow_the_truth(gateway):
    name = f"settlement-{DAY}.csv"
    first = download(gateway, name).text
    assert download(gateway, name).text == first
    capture_some(gateway)
    assert download(gateway, name).text.count("\n") > first.count("\n")
    gateway.http.post("/_sandbox/reset").raise_for_status()
    assert download(gateway, name).text == first


DAYS = (date(2026, 11, 20), date(2026, 11, 23), date(2026, 11, 24), date(2026, 11, 27))
"""A weekend, and two dates that nobody asked for."""


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def handed_out(port, day):
    """What the sandbox hands out of a date."""
    base = f"http://127.0.0.1:{port}/_sandbox"
    now = datetime.fromisoformat(httpx.get(f"{base}/clock").json()["now"])
    to = datetime.combine(day, time(22, tzinfo=UTC))
    httpx.post(f"{base}/clock", json={"seconds": max(0, int((to - now).total_seconds()))})
    return httpx.post(f"{base}/files/{ACCOUNT}/{day}/", timeout=60)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Of a sandbox that is started anew for each date."""
    return tmp_path_factory.mktemp("carried") / "sandbox.sqlite"


@pytest.fixture(scope="module")
def carried(state):
    """Each date's files; the sandbox ends and starts again between them."""
    texts = {}
    for day in DAYS:
        with serving(SandboxOptions(orders=200, state=state)) as sandbox:
            texts[day] = handed_out(sandbox.port, day).json()
    return texts


@pytest.fixture
def port(state, carried):
    assert carried
    with serving(SandboxOptions(orders=200, state=state)) as sandbox:
        yield sandbox.port


def statements_of(carried, bank):
    """The rows of a bank's statements, date after date."""
    return [
        row for day, texts in carried.items() for row in rows(texts[f"statements-{bank}-{day}.csv"])
    ]


@pytest.mark.parametrize("bank", ["main", "pounds", "usd"])
def test_statements_go_on_under_the_next_number_and_from_the_last_balance(carried, bank):
    """Across dates, weekends and restarts: no number twice, each opens with the last closing."""
    shown = {}
    for row in statements_of(carried, bank):
        day = date.fromisoformat(row["from_date"])
        shown[int(row["statement_no"])] = (day, row["opening"], row["closing"])
    numbers, told = [*shown], [*shown.values()]

    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert [now[1] for now in told[1:]] == [before[2] for before in told[:-1]]
    days = [each[0] for each in told]
    business = {
        DAYS[0] + timedelta(days=n)
        for n in range(1, 8)
        if (DAYS[0] + timedelta(days=n)).weekday() < 5
    }
    assert set(days) > business
    assert days == sorted(set(days))


def test_a_date_is_told_once_and_never_otherwise(carried, port):
    for day in (DAYS[0], DAYS[-1]):
        assert handed_out(port, day).json() == carried[day]
    assert handed_out(port, date(2026, 11, 25)).status_code == 404


def test_every_movement_is_settled_paid_out_and_booked_once(carried, port):
    later = [day for day in DAYS if day > DEMO_BUSINESS_DATE]
    lines = [row for day in later for row in rows(carried[day][f"settlement-{day}.csv"])]
    effects = httpx.get(f"http://127.0.0.1:{port}/_sandbox/effects").text.splitlines()

    since = [json.loads(line) for line in effects]
    since = [
        each
        for each in since
        if each["account_id"] == ACCOUNT
        and each["operation"] in {"capture", "refund", "chargeback"}
        and datetime.fromisoformat(each["committed_at"]) > CLOCK_START
    ]
    settled = [row for row in lines if row["entry_type"] != "payout"]
    assert Counter(row["transaction_id"] for row in settled) == Counter(
        each["transaction_id"] for each in since
    )
    assert len(settled) >= 5 * len(later)

    nets: Counter[tuple[str, str]] = Counter()
    for row in lines:
        amount = parse_signed_minor_units(row["net"], currency=row["currency"])
        sign = -1 if row["entry_type"] == "payout" else 1
        nets[row["batch_id"], row["currency"]] += sign * amount
    assert {*nets.values()} == {0}

    entries = [row for day in later for row in rows(carried[day][f"ledger-{day}.csv"])]
    assert {*Counter(row["entry_id"] for row in entries).values()} == {1}
    booked = {row["order_no"] for row in entries if row["entry_type"] == "capture"}
    assert booked >= {row["order_no"] for row in settled if row["entry_type"] == "capture"}
