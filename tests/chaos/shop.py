"""A merchant on loopback for nights in processes of their own, and the judge of what they did."""

import csv
import json
import random
import shutil
import sqlite3
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from journal_checker import hashes, shrunk, violations
from nursery import Nursery
from truth import MOVING, Effect, attributed, carried, effects_of, forgotten, journal_of

from recon.approvers import Approver
from recon.settings import load_tables
from recon.steps import people, verdicts
from recon.steps.environment import environment_of
from recon.steps.identity import Person
from recon.store.approval_rows import Word

MERCHANT, ACCOUNT = "100042", "100042001"
BUSINESS_DATE = "2026-11-20"
BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
SEEDED = 120
"""Orders of the sandbox's population."""
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("refund_amount", "action", "action_amount", "action_reason", "request_id"),
)
OPEN = {"in_flight", "in_doubt"}
QUIET_DAYS = 10
PART = "0.50"
ENDINGS = {0, 3, 4}
"""Exit codes of a night that came to its end."""


@dataclass(frozen=True)
class Wanted:
    """What the merchant asks of one seeded payment."""

    payment: Mapping[str, str]
    action: str
    amount: str

    @property
    def row(self) -> dict[str, str]:
        """Its row of an order file."""
        statuses = {"capture": "paid", "cancel": "cancelled", "refund": "refunded"}
        whole = self.amount == self.payment["amount"]
        return {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "order_no": self.payment["order_no"],
            "currency": self.payment["currency"],
            "amount": self.payment["amount"],
            "status": statuses[self.action] if whole else "paid",
            "ordered_at": self.payment["committed_at"],
            "action": self.action,
            "action_amount": "" if whole else self.amount,
        }


@dataclass
class Shop:
    """One account with an inbox, a database and a gateway; its nights run in other processes."""

    folder: Path
    base_url: str
    database_url: str
    nursery: Nursery
    chance: random.Random
    now: datetime = BEGAN
    date: str = BUSINESS_DATE
    wanted: list[Wanted] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    free: dict[str, list[Mapping[str, str]]] = field(default_factory=dict)
    """Seeded payments that nobody has asked anything of yet, by the action that fits them."""

    def __post_init__(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("config", "inbox", "reports", "barrier"):
            (self.folder / name).mkdir(parents=True)
        _configure(self.folder)
        self.post("/_sandbox/reset", {})
        self.post("/_sandbox/faults", {"rules": []})
        self.free = _free(self._seeded())

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a night."""
        return {
            "RECON_GATEWAY_BASE_URL": self.base_url,
            "RECON_SIGN_KEY": "sandbox",
            "RECON_DATABASE_URL": self.database_url,
            "RECON_CONFIG_DIR": str(self.folder / "config"),
        }

    def instruct(self, count: int) -> None:
        """Put a file with so many captures, cancels and refunds into the inbox."""
        rows = []
        for _ in range(count):
            action = self.chance.choice(("capture", "capture", "cancel", "refund"))
            payments = self.free["refund" if action == "refund" else "capture"]
            if not payments:
                continue
            payment = payments.pop()
            part = action == "refund" and self.chance.random() < 0.5
            rows.append(Wanted(payment, action, PART if part else payment["amount"]))
        self.drop(rows)

    def drop(self, rows: Sequence[Wanted]) -> None:
        """Put a file with these rows into the inbox."""
        self.wanted += rows
        path = self.folder / "inbox" / f"orders-{len(self.wanted):04}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER, restval="")
            writer.writeheader()
            writer.writerows(one.row for one in rows)

    def start(self, **how: Any) -> int:
        """Start a night; returns its process id."""
        self.now += timedelta(seconds=2)
        return self.nursery.start(self._order(**how))

    def warm(self) -> int:
        """A first night, so that later ones are quick."""
        return self.nursery.warm(self._order())

    def rush(self, count: int, **how: Any) -> dict[int, tuple[int, str]]:
        """So many nights at once, let go at one moment; how each ended and what it said."""
        barrier = self.folder / "barrier"
        shutil.rmtree(barrier)
        barrier.mkdir()
        pids = {
            self.start(
                told=str(self.folder / f"told-{number}.txt"),
                barrier={"folder": str(barrier), "count": count},
                money_only=True,
                **how,
            ): self.folder / f"told-{number}.txt"
            for number in range(count)
        }
        return {pid: (self.nursery.wait(pid), told.read_text()) for pid, told in pids.items()}

    def _order(self, **how: Any) -> dict[str, Any]:
        return {
            "account": (MERCHANT, ACCOUNT),
            "date": self.date,
            "now": self.now.isoformat(),
            "variables": self.variables,
            "told": str(self.told),
            **how,
        }

    @property
    def told(self) -> Path:
        """What the newest night said."""
        return self.folder / "told.txt"

    def night(self, **how: Any) -> int:
        """A night from its start to its end, however it ends."""
        return self.nursery.wait(self.start(**how))

    def wait(self, much: timedelta) -> None:
        """Time passes, ours and the gateway's."""
        self.now += much
        self.post("/_sandbox/clock", {"seconds": int(much.total_seconds())})

    def fault(self, *rules: Mapping[str, Any]) -> None:
        """Replace the sandbox's fault plan."""
        self.post("/_sandbox/faults", {"rules": list(rules)})

    def quiet(self) -> int:
        """Nothing goes wrong any more, for as many nights as evidence needs; returns how many."""
        self.fault()
        for nights in range(1, QUIET_DAYS + 1):
            # The first has to be whole; the others only wait for evidence.
            ended = self.night(money_only=nights > 1)
            assert ended in ENDINGS, f"{ended}: {self.told.read_text()}"
            if not set(self.states().values()) & {*OPEN, "approved", "needs_human"}:
                break
            self.decide()
            self.wait(timedelta(days=1))
        return nights

    def decide(self) -> int:
        """Two people look at the truth and end what waits for them; returns how many."""
        waiting = [wanted for wanted, state in self.states().items() if state == "needs_human"]
        if waiting:
            with closing(self.journal()) as journal:
                done = carried(journal, self.effects())
            for wanted in waiting:
                self._say(wanted, said="applied" if done[wanted] else "not_applied")
        return len(waiting)

    def _say(self, wanted: str, *, said: str) -> None:
        with environment_of(self.variables, clock=self._tick) as environment:
            for short in ("ann", "ben"):
                word = Word(short, authenticated=True, at=self.now)
                person = Person(short, Approver(name=short), word)
                verdicts.resolve(
                    wanted,
                    said=said,
                    evidence="looked it up in the portal",
                    person=person,
                    environment=environment,
                )

    def withdraw_hopeless(self) -> int:
        """A person takes back what can never go, such as a refund of what was never captured."""
        with closing(self.journal()) as journal:
            held = [
                row[0]
                for row in journal.execute(
                    "SELECT instruction_id FROM instruction WHERE state = 'approved' "
                    "AND hold LIKE 'the gateway shows expired%'"
                )
            ]
        with environment_of(self.variables, clock=self._tick) as environment:
            for wanted in held:
                people.withdraw(wanted, by="ann", reason="never paid", environment=environment)
        return len(held)

    def _tick(self) -> datetime:
        self.now += timedelta(milliseconds=10)
        return self.now

    def states(self) -> dict[str, str]:
        """Every instruction's state."""
        with closing(self.journal()) as journal:
            return dict(journal.execute("SELECT instruction_id, state FROM instruction").fetchall())

    def problems(self, *, ended: bool = False) -> list[str]:
        """What the checker says of the journal now, judged against the sandbox's own truth."""
        with closing(self.journal()) as journal:
            effects = attributed(journal, self.effects())
            found = [*shrunk(self.seen, journal), *violations(journal, effects, ended=ended)]
            self.seen = hashes(journal)
            if ended:
                wanted = ((one.action, one.payment["order_no"]) for one in self.wanted)
                found += forgotten(journal, effects, wanted=wanted)
        invariants = json.loads(self._get("/_sandbox/invariants"))
        return found + [f"sandbox: {name} = {count}" for name, count in invariants.items() if count]

    def effects(self) -> list[Effect]:
        """What really happened because of our requests."""
        return effects_of(
            row for row in self._effects() if row["origin"] == "api" and row["operation"] in MOVING
        )

    def journal(self) -> sqlite3.Connection:
        """The journal as SQLite, whatever it is kept in."""
        return journal_of(self.database_url)

    def _seeded(self) -> list[dict[str, str]]:
        return [row for row in self._effects() if row["origin"] == "seed"]

    def _effects(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._get("/_sandbox/effects").splitlines()]

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.base_url + path) as reply:  # noqa: S310 - loopback
            return str(reply.read().decode())

    def post(self, path: str, document: Mapping[str, Any]) -> str:
        """Tell the gateway something; its answer."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.base_url + path,
            json.dumps(document).encode(),
            {"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request) as reply:  # noqa: S310 - loopback
            return str(reply.read().decode())


def _free(seeded: Sequence[Mapping[str, str]]) -> dict[str, list[Mapping[str, str]]]:
    """Recent card payments of the account: authorised only, or plainly captured."""
    kinds: dict[str, set[str]] = {}
    for row in seeded:
        kinds.setdefault(row["transaction_id"], set()).add(row["operation"])
    recent = (BEGAN - timedelta(days=5)).isoformat()
    authorised = [
        row
        for row in seeded
        if row["operation"] == "authorise"
        and (row["account_id"], row["currency"] == "JPY") == (ACCOUNT, False)
        and row["committed_at"] >= recent
    ]
    shapes = {"capture": {"authorise"}, "refund": {"authorise", "capture"}}
    return {
        action: [row for row in authorised if kinds[row["transaction_id"]] == shape]
        for action, shape in shapes.items()
    }


def _configure(folder: Path) -> None:
    (folder / "ledger.csv").write_text(
        "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
    )
    played = load_tables("sandbox", config_dir=None)
    rules = ["[window]", "opening_date = 2026-01-01", "[gateway]", 'amount_means = "authorised"']
    for name in ("payment_status", "query_result"):
        rules += [f"[{name}]", *(f'{code} = "{word}"' for code, word in played[name].items())]
    config = folder / "config"
    (config / "rules.toml").write_text("\n".join(rules))
    (config / "gateway.toml").write_text(
        "calls_per_second = 1000\ndeadline_seconds = 2\nconnect_timeout_seconds = 1\n"
        "read_patience_seconds = 0.4\n"
    )
    (config / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\nname = "Northwind"\n'
        f'inbox = "{folder / "inbox"}"\nreports = "{folder / "reports"}"\nsettle_seconds = 0\n'
        f'ledger = {{ path = "{folder / "ledger.csv"}" }}\n'
    )
