"""A merchant on loopback for nights in processes of their own, and the judge of what they did."""

import csv
import json
import random
import shutil
import sqlite3
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deliveries import Intention
from journal_checker import Known, hashes, shrunk, violations
from nursery import Nursery
from truth import MOVING, Effect, attributed, carried, effects_of, forgotten, journal_of

from recon.config.settings import load_tables
from recon.model.money import parse_minor_units
from recon.steps.approvals import verdicts
from recon.steps.money import approve
from recon.steps.runtime.environment import environment_of
from recon.steps.runtime.identity import identify

MERCHANT, ACCOUNT = "100042", "100042001"
BUSINESS_DATE = "2026-11-20"
BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
SEEDED = 120
"""Orders of the sandbox's population."""
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("refund_amount", "action", "action_amount", "action_reason", "request_id"),
)
INSTRUCTED = (
    *("merchant_id", "account_id", "kind", "request_id", "order_no", "transaction_id"),
    *("currency", "amount"),
)
PEOPLE = ("ann", "ben")
CURRENCIES = ("EUR", "USD", "GBP", "JPY", "KWD", "CHF", "PLN")
OPEN = {"in_flight", "in_doubt"}
QUIET_DAYS = 10
PART = "0.50"
ENDINGS = {0, 3, 4, 5}
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

    @property
    def instruction(self) -> dict[str, str]:
        """The same as a row of an instruction file."""
        names = ("order_no", "transaction_id", "currency")
        return {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "kind": self.action,
            "amount": self.amount,
            **{name: self.payment[name] for name in names},
        }

    @property
    def intention(self) -> Intention:
        """What it is of the payment, by the money alone."""
        minor = parse_minor_units(self.amount, currency=self.payment["currency"])
        payment = self.payment
        return Intention(self.action, payment["transaction_id"], minor, payment["order_no"])


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
    files: int = 0
    reported_again: int = 0
    """How many files told what other files had told before."""
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
        self._file("orders", HEADER, [one.row for one in rows])

    def notify_again(self) -> None:
        """What was asked before once more: in another file, under other ids, by another program."""
        if not self.wanted:
            return
        again = self.chance.sample(self.wanted, min(2, len(self.wanted)))
        self.reported_again += 1
        ids = [f"again-{self.reported_again}-{number}" for number in range(len(again))]
        if self.chance.random() < 0.5:
            rows = [
                one.instruction | {"request_id": wanted}
                for one, wanted in zip(again, ids, strict=True)
            ]
            self._file("instructions", INSTRUCTED, rows)
        else:
            bare = self.chance.random() < 0.5
            rows = [
                one.row | {"request_id": "" if bare else wanted}
                for one, wanted in zip(again, ids, strict=True)
            ]
            self._file("orders", HEADER, rows)

    def _file(self, kind: str, header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        self.files += 1
        path = self.folder / "inbox" / f"{kind}-{self.files:04}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=header, restval="")
            writer.writeheader()
            writer.writerows(rows)

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
            if not set(self.states().values()) & {*OPEN, "approved", "planned", "needs_human"}:
                break
            self.decide()
            self.wait(timedelta(days=1))
        return nights

    def decide(self) -> int:
        """Two people look at the truth and end what waits for them; returns how many."""
        self.look()
        waiting = [wanted for wanted, state in self.states().items() if state == "needs_human"]
        if waiting:
            with closing(self.journal()) as journal:
                done = carried(journal, self.effects())
            for wanted in waiting:
                self._echo(wanted, word="applied" if done[wanted] else "not_applied")
        return len(waiting)

    def look(self) -> None:
        """One person rejects what was told twice: here nobody ever wants the same thing again."""
        held = [wanted for wanted, state in self.states().items() if state == "planned"]
        if held:
            with environment_of(self.variables, clock=self.tick) as environment:
                person = identify(PEOPLE[0], code=None, environment=environment)
                approve.reject(
                    held, person=person, reason="told twice, wanted once", environment=environment
                )

    def _echo(self, wanted: str, *, word: str) -> None:
        with environment_of(self.variables, clock=self.tick) as environment:
            for short in PEOPLE:
                verdicts.resolve(
                    wanted,
                    verdict=word,
                    evidence="looked it up in the portal",
                    person=identify(short, code=None, environment=environment),
                )

    def tick(self) -> datetime:
        """The clock of whoever does something beside the nights."""
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
            known = Known(Counter(one.intention for one in self.wanted))
            found = [
                *shrunk(self.seen, journal),
                *violations(journal, effects, known=known, ended=ended),
            ]
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
    rules += ["[grace]", 'gateway_to_ledger = "1h"']
    # A grave break has to be answered in its workbook before anybody signs: here none is grave.
    for currency in CURRENCIES:
        rules += [f"[severity.{currency}]", "medium = 1000000", "high = 2000000"]
        rules += ["critical = 3000000"]
    for name in ("payment_status", "query_result"):
        rules += [f"[{name}]", *(f'{code} = "{word}"' for code, word in played[name].items())]
    config = folder / "config"
    (config / "rules.toml").write_text("\n".join(rules))
    (config / "gateway.toml").write_text(
        "calls_per_second = 1000\ndeadline_seconds = 2\nconnect_timeout_seconds = 1\n"
        "read_retry_seconds = 0.4\n"
    )
    people = [
        f'[approvers.{short}]\nname = "{name}"\nrole = "approver"\n'
        "limit = { EUR = 1000000, USD = 1000000, GBP = 1000000 }\n"
        for short, name in zip(PEOPLE, ("Ann Lee", "Ben Orr"), strict=True)
    ]
    (config / "approvers.toml").write_text("".join(people))
    (config / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\nname = "Northwind"\n'
        f'inbox = "{folder / "inbox"}"\nreports = "{folder / "reports"}"\nsettle_seconds = 0\n'
        f'ledger = {{ path = "{folder / "ledger.csv"}" }}\n'
    )
