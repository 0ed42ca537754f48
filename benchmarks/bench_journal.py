"""What the journal costs: 1,000 captures with it and without, the gateway answering after 50 ms.

Run by `make bench-journal`. The sandbox runs in a process of its own; both kinds of rounds take
turns, so that other work on the machine hits both alike. With the journal means all that a night
does around a batch: claim and note of the chain's head, both on the disk before the request
leaves, then reply and outcomes, on the disk with the next claim (SQLite). Without means the same
requests and nothing else.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from recon.config.settings import load_tables
from recon.gateway.money_requests import GatewayOfMoney
from recon.model.money import parse_minor_units
from recon.model.nights import Mode, NightRequest
from recon.model.words import GatewayState, InstructionKind, InstructionState
from recon.settlement.eligibility import Cleared, ShownPayment
from recon.settlement.instruction import ROWS_PER_BATCH_MAX, Instruction
from recon.settlement.planning import RULE_APPROVER, Plan
from recon.settlement.sender import Sender
from recon.steps.ground.environment import Environment, environment_of, system_clock
from recon.steps.money import spilled
from recon.store.database.migrate import upgrade
from recon.store.database.night_lock import account_lock
from recon.store.money import instruction_rows
from recon.store.money.journal import StoredJournal
from recon.store.nights import runs

INBOX = "inbox"
PLACE = {"merchant_id": "100042", "account_id": "100042001"}
CAPTURES = 1_000
SANDBOX_ORDERS = 8_000
ANSWER_SECONDS = 0.05
ROUNDS = 3
RUN_ID = "bench"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a round cost this process."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.cpu:.2f} s CPU"


class NoJournal:
    """Implements `settlement.sender.Journal` and keeps nothing."""

    def halted(self) -> str:
        """Never."""
        return ""

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Keeps nothing."""

    claim = note_outside = release = doubt = keep_reply = record = _nothing


def main() -> None:
    """Print every round, the ratio of the median seconds, and what a batch costs more."""
    rounds: dict[str, list[Taken]] = {"with": [], "without": []}
    with sandbox() as base_url:
        for _ in range(ROUNDS):
            for how, taken in rounds.items():
                taken.append(one_round(base_url, journalled=how == "with"))
                print(f"{how} the journal: {taken[-1]}", flush=True)
    seconds = {how: statistics.median(seconds.seconds for seconds in rounds[how]) for how in rounds}
    cpu = {how: statistics.median(seconds.cpu for seconds in rounds[how]) for how in rounds}
    batches = CAPTURES // ROWS_PER_BATCH_MAX
    print(f"{CAPTURES} captures, ratio of medians: {seconds['with'] / seconds['without']:.3f}")
    for what, of in (("", seconds), (" CPU", cpu)):
        print(f"more per batch:{what} {(of['with'] - of['without']) / batches * 1000:.1f} ms")


@contextmanager
def sandbox(orders: int = SANDBOX_ORDERS) -> Iterator[str]:
    """A sandbox with so many payments, in a process of its own; its address."""
    code = (
        "from recon.sandbox import SandboxOptions\nfrom recon.sandbox.server.serving import serve\n"
        f"serve(SandboxOptions(orders={orders}))"
    )
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()


def one_round(base_url: str, *, journalled: bool) -> Taken:
    """One pass of the sender; the sandbox and the database begin anew."""
    post(base_url, "reset", {})
    rule = {"operation": "capture", "kind": "delay", "seconds": ANSWER_SECONDS}
    post(base_url, "faults", {"rules": [rule]})
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        environment = stack.enter_context(
            environment_of(variables(Path(name), base_url), clock=system_clock)
        )
        gateway = GatewayOfMoney.of(
            environment.settings,
            account=(PLACE["merchant_id"], PLACE["account_id"]),
            clock=system_clock,
        )
        cleared = captures(authorised(base_url))
        stack.enter_context(account_lock(environment.store, **PLACE))
        run = planned(cleared, environment=environment)
        journal: Any = NoJournal()
        if journalled:
            stored = StoredJournal(environment.store, run_id=RUN_ID, **PLACE)
            journal = stack.enter_context(spilled.lasting(stored, run=run, environment=environment))
        sender = Sender(
            gateway=gateway,
            journal=journal,
            clock=system_clock,
            new_id=environment.new_id,
            crash_point=str,
        )
        began, worked = time.perf_counter(), time.process_time()
        sent = asyncio.run(sender.send_all(cleared))
        environment.store.flush()
        taken = Taken(time.perf_counter() - began, time.process_time() - worked)
    if sent.rows != CAPTURES:
        sys.exit(f"only {sent.rows} of {CAPTURES} captures were sent: {sent.stop_reason}")
    return taken


def planned(cleared: list[Cleared], *, environment: Environment) -> runs.Run:
    """The run that sends, with its instructions in the database."""
    request = NightRequest(PLACE["merchant_id"], PLACE["account_id"], date(2026, 11, 20), Mode.LIVE)
    now = system_clock()
    with environment.store.writing() as connection:
        runs.start(connection, request, run_id=RUN_ID, as_of=now, now=now)
        run = runs.get(connection, RUN_ID)
        wanted = tuple(instruction.instruction for instruction in cleared)
        instruction_rows.save_plan(connection, run, plan=Plan(wanted, ()), at=now)
    return run


def authorised(base_url: str) -> list[dict[str, str]]:
    """Payments of the account that can be captured."""
    with urllib.request.urlopen(f"{base_url}/_sandbox/payments") as reply:  # noqa: S310 - loopback
        rows = [json.loads(line) for line in reply.read().splitlines()]
    return [
        row
        for row in rows
        if row["state"] == "authorised" and row["account_id"] == PLACE["account_id"]
    ][:CAPTURES]


def captures(rows: list[dict[str, str]]) -> list[Cleared]:
    """Each payment with the instruction to capture all of it."""
    return [cleared_of(row, number=number) for number, row in enumerate(rows)]


def cleared_of(row: dict[str, str], *, number: int) -> Cleared:
    """One capture, approved by rule and cleared."""
    amount = parse_minor_units(row["amount"], currency=row["currency"])
    instruction = Instruction(
        instruction_id=f"i{number:05}",
        natural_key=f"capture|{number}",
        **PLACE,
        kind=InstructionKind.CAPTURE,
        order_no=row["order_no"],
        transaction_id=row["transaction_id"],
        currency=row["currency"],
        amount=amount,
        payment_amount=amount,
        reason="",
        request_id="",
        file_id=None,
        line=number,
        state=InstructionState.APPROVED,
        hold="",
        attempts=0,
        baseline_status="",
        approved_by=RULE_APPROVER,
        in_doubt_since=None,
    )
    payment = ShownPayment(
        transaction_id=row["transaction_id"],
        state=GatewayState.AUTHORISED,
        payment_status="2000",
        currency=row["currency"],
        amount=amount,
        dated=None,
    )
    return Cleared(instruction, payment)


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


if __name__ == "__main__":
    main()
