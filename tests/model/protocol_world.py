"""One account, its database and a played gateway: nights of the real code that may end anywhere.

A crash is an exception that nothing catches, raised at any mark of the sender, before or after any
commit and around any effect; the next night opens the same file again. Time is a number here: the
clock on the wall may be set, `elapsed` may not.
"""

import asyncio
import hashlib
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import played_people as people
import pytest
from deliveries import ACCOUNT, FIRST, MERCHANT, Guise, Intention, Merchant
from journal_checker import Known, hashes, shrunk, violations
from pydantic import SecretStr
from scripted_gateway import LATE, PlayedGateway, Script
from sqlalchemy import Connection

from recon.config.keys import SignKeys
from recon.config.limits import Limits
from recon.config.rules import GatewayRules, Rules
from recon.config.settings import (
    GATEWAY_FILES,
    AccountSettings,
    GatewaySettings,
    Settings,
    load_tables,
)
from recon.desk.held_keys import SANDBOX_KEYS
from recon.files import reader as files_of_a_door
from recon.files import reader_process
from recon.instructions.money_requests import GatewayOfMoney
from recon.model.errors import ReconError, StoreError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import ControlTotal, InstructionKind, InstructionState
from recon.model.uptime import Uptime
from recon.steps.files import ingest as ingest_step
from recon.steps.money import settle as settle_step
from recon.steps.money.settle import MoneyOfRun
from recon.steps.night import query
from recon.steps.night import query as query_step
from recon.steps.runtime.environment import Environment, id_source, outside_heads
from recon.store.database.engine import Store, parse_url
from recon.store.nights import runs
from recon.store.nights.answer_parts import AFTER, BASELINE

BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
TICK = timedelta(milliseconds=250)
TIED = (ControlTotal("T9", "not asked of a played night", "", "", "", "count", 0, 0),)
"""Each look at a clock takes this long, so that events have an order."""
AUTHORISED = tuple(f"A-{number}" for number in range(6))
CAPTURED = tuple(f"C-{number}" for number in range(4))
REVIEWED = ("R-0",)
ATTACKED = ("X-0", "X-1", "X-2")
"""Captured payments that only an attacker asks anything of."""
QUIET_DAYS = 14
"""After the last fault; by then a refund that nobody can see goes to people."""
CASE_NIGHTS = 3
"""Quiet nights after which whatever the gateway shows against the journal has a case."""
HANDED_OVER = (InstructionState.NEEDS_HUMAN,)
RUNNING = (timedelta(0), timedelta(days=30), timedelta(hours=1))
"""How long a machine has run that takes the place of another."""


_OWN_RUNNER = asyncio.Runner
"""For a night in a thread: a night beside it puts its own loop in the place of new ones."""


class Crash(BaseException):
    """The process is gone."""


class FragileStore(Store):
    """A database whose user may be gone before or after any commit, or which itself goes away."""

    def __init__(self, path: Path) -> None:
        super().__init__(parse_url(f"sqlite:///{path}"))
        self.reach: Callable[[str], None] = str
        self.away = 0
        """How many more transactions find nobody there."""
        self._looking: sqlite3.Connection | None = None

    def close(self) -> None:
        """Keep the connections for the next process: a rollback left nothing behind in them."""

    def forget(self) -> None:
        """Give all connections back, before another world takes the file's place."""
        super().close()
        if self._looking is not None:
            self._looking.close()
            self._looking = None

    @property
    def looking(self) -> sqlite3.Connection:
        """A connection past all of the product, by which the checker looks at the file."""
        if self._looking is None:
            self._looking = sqlite3.connect(
                f"{self.path}", isolation_level=None, check_same_thread=False
            )
        return self._looking

    @contextmanager
    def writing(self, **how: Any) -> Iterator[Connection]:
        """As the real one, with a point on either side of the commit."""
        self._refuse_while_away()
        with super().writing(**how) as connection:
            yield connection
            self.reach("before commit")
        self.reach("after commit")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """As the real one, while it is there."""
        self._refuse_while_away()
        with super().reading() as connection:
            yield connection

    def _refuse_while_away(self) -> None:
        if self.away:
            self.away -= 1
            raise StoreError("the database is away")


def settings_of(folder: Path) -> Settings:
    """Everything as shipped, with the sandbox's codes."""
    played = load_tables("sandbox", config_dir=None)
    tables = {name: played[name] for name in ("payment_status", "query_result")}
    gateway = GatewayRules(amount_means="authorised")
    rules = Rules.model_validate({"gateway": gateway.model_dump(), **tables})
    return Settings(
        database_url=SecretStr("sqlite:///unused"),
        gateway_base_url="http://127.0.0.1:9",
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": "sandbox"}, accounts={}),
        gateway=GatewaySettings(deadline_seconds=10, calls_per_second=10_000),
        interface={name: load_tables(name, config_dir=None) for name in GATEWAY_FILES},
        accounts={f"{MERCHANT}/{ACCOUNT}": account_of(folder)},
        rules=rules,
        approvers=people.DECLARED,
        config_dir=None,
    )


def account_of(folder: Path) -> AccountSettings:
    """An account with its files in this folder, which are read as soon as they lie there."""
    return AccountSettings(inbox=folder / "inbox", reports=folder / "reports", settle_seconds=0)


@dataclass
class World:
    store: FragileStore
    """Closed between processes; its compiled statements are kept, for speed."""
    settings: Settings
    real: GatewayOfMoney
    runner: asyncio.Runner
    """One event loop for all worlds: a night starts four, and each takes a while to make."""
    seed: int = 0
    true_time: timedelta = timedelta(0)
    wall_error: timedelta = timedelta(0)
    """How far the clock on the wall was set away from the truth."""
    boots: int = 0
    booted_at: timedelta = timedelta(0)
    """In true time; a machine in another's place may have run for long."""
    is_new_every_night: bool = False
    """Each night has a machine of its own."""
    points: list[str] = field(default_factory=list)
    """Points that this night reached, in order."""
    crash_at: int = 0
    """The number of the point at which the process ends; 0 for none."""
    lose_at: int = 0
    """The number of the point at which the database goes away; 0 for none."""
    away: int = 0
    """For how many transactions it is away then."""
    nights: int = 0
    beside: Callable[[], None] | None = None
    """What somebody does while the night is at the point `beside_at`."""
    beside_at: int | str = 0
    """The number of the point, or its name."""
    wrong: set[str] = field(default_factory=set)
    """Instructions about which two people said what is not true."""
    lagged: bool = False
    """The query was behind by more than evidence is waited for."""
    stopped: bool = False
    """People stopped all sending."""
    fresh: list[str] = field(default_factory=lambda: list(AUTHORISED))
    """Authorised payments that nobody has asked anything of yet."""
    seen: list[str] = field(default_factory=list)
    """The chain as it stood at the last look."""

    @classmethod
    def of(
        cls,
        store: FragileStore,
        *,
        template: Path,
        settings: Settings,
        runner: asyncio.Runner,
        seed: int = 0,
    ) -> Self:
        """A new world in an empty folder, from a database that has its tables."""
        store.forget()
        shutil.rmtree(store.path.parent, ignore_errors=True)
        for name in ("inbox", "reports"):
            (store.path.parent / name).mkdir(parents=True)
        shutil.copyfile(template, store.path)
        real = GatewayOfMoney(settings, account=(MERCHANT, ACCOUNT), clock=lambda: BEGAN)
        return cls(store, settings, real, runner, seed)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.gateway = PlayedGateway(
            real=self.real,
            elapsed=lambda: self.true_time,
            now=self.clock,
            reach=self.reach,
            on_the_wire=self._on_the_wire,
            authorised=AUTHORISED,
            captured=CAPTURED + ATTACKED,
            reviewed=REVIEWED,
        )
        self.merchant = Merchant(self.path.parent / "inbox")
        self.store.outside = outside_heads(self.settings)

    @property
    def path(self) -> Path:
        assert self.store.path is not None
        return self.store.path

    def clock(self) -> datetime:
        self.true_time += TICK
        return BEGAN + self.true_time + self.wall_error

    def uptime(self) -> Uptime:
        running = self.true_time - self.booted_at
        return Uptime(f"boot {self.boots}", int(running.total_seconds() * 1000))

    def reboot(self, *, running: timedelta = timedelta(0)) -> None:
        """The machine starts anew, or another one that has run so long takes its place."""
        self.boots += 1
        self.booted_at = self.true_time - running

    def reach(self, point: str) -> None:
        """A point at which the process may end."""
        self.points.append(point)
        if len(self.points) == self.crash_at:
            raise Crash(point)
        if point == "before claim" and self.stopped:
            self.gateway.forbidden = "people had stopped all sending"
        self._let_act(point)
        if len(self.points) == self.lose_at and "commit" in point:
            self.store.away = self.away
            raise StoreError(f"the connection was lost {point}")

    @contextmanager
    def environment(self) -> Iterator[Environment]:
        """A process that just started."""
        self.store.reach = self.reach
        try:
            yield Environment(
                desk=SANDBOX_KEYS,
                settings=self.settings,
                store=self.store,
                clock=self.clock,
                new_id=id_source(self.chance),
                randomness=self.chance,
                crash_point=self.reach,
                variables={},
                wall_clock=self.clock,
                uptime=self.uptime,
                pause=self.pass_time,
            )
        finally:
            self.store.close()

    def instruct(
        self,
        kind: InstructionKind,
        transaction_id: str,
        *,
        amount: int,
        guise: Guise = FIRST[0],
    ) -> None:
        """The merchant wants something, and a file says so, approved by rule."""
        self.merchant.want(Intention(kind.value, transaction_id, amount), guise=guise)

    def night(
        self,
        *,
        scripts: Sequence[Script] = (),
        crash_at: int = 0,
        lose_at: int = 0,
        away: int = 0,
        mode: Mode = Mode.LIVE,
    ) -> bool:
        """One night by the real steps; False when the process ended within it.

        At `lose_at` the database goes away for `away` transactions.
        """
        self._alive(crash_at)
        if self.is_new_every_night:
            self.reboot(running=RUNNING[self.boots % len(RUNNING)])
        self.lose_at, self.away = lose_at, away
        self.gateway.scripts = list(scripts)
        try:
            with self._played(), self.environment() as environment:
                self._steps(environment, mode=mode)
        except Crash:
            return False
        except StoreError:
            if not lose_at:
                raise
            return False
        finally:
            self.crash_at = self.lose_at = self.store.away = 0
            self.beside = None
        return True

    def act_beside(self, act: Callable[[], object], *, at: int | str) -> None:
        """Let somebody do this when the next night is at a point."""
        self.beside, self.beside_at = act, at

    def approve_by_rule(self, *, is_allowed: bool) -> None:
        """Whether a rule approves from now on what files ask for."""
        changed = {"auto_approve": is_allowed}
        accounts = self.settings.accounts.items()
        update = {"accounts": {name: one.model_copy(update=changed) for name, one in accounts}}
        self.settings = self.settings.model_copy(update=update)

    def limit(self, limits: Limits) -> None:
        self.settings = self.settings.model_copy(update={"limits": limits})

    def backup(self) -> bytes:
        return self.store.looking.serialize()

    def put_back(self, backup: bytes, *, head: bool) -> None:
        """A backup in place of the database, with what is noted beside the reports or without."""
        self.store.forget()
        for name in ("", "-wal", "-shm"):
            Path(f"{self.path}{name}").unlink(missing_ok=True)
        self.path.write_bytes(backup)
        if not head:
            shutil.rmtree(self.path.parent / "reports")
            (self.path.parent / "reports").mkdir()

    def copied(self) -> Self:
        """The same account beside a copy of the database: its inbox, reports and gateway."""
        folder = self.path.parent / "copy"
        folder.mkdir()
        (folder / self.path.name).write_bytes(self.backup())
        # What the gateway answered before lies there alone.
        shutil.copytree(self.path.parent / "archive", folder / "archive")
        store = FragileStore(folder / self.path.name)
        copy = replace(self, store=store, points=[], nights=100, seed=self.seed + 1_000_000)
        copy.gateway, copy.merchant = self.gateway, self.merchant
        return copy

    def night_in_a_thread(self) -> None:
        """A night beside one that runs: with an event loop of its own."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._night_on_a_loop).result()
        self.store.forget()

    def _night_on_a_loop(self) -> None:
        with _OWN_RUNNER() as self.runner, suppress(ReconError):
            self.night()

    def fall_behind(self, much: timedelta) -> None:
        """From now on the query shows what was true so long ago."""
        self.gateway.lag = much
        self.lagged |= much > LATE

    def pass_time(self, much: timedelta) -> None:
        self.true_time += much

    def decide(self, *, states: tuple[InstructionState, ...] = HANDED_OVER) -> int:
        """Two people look at the truth and end what is in these states; returns how many are."""
        self._alive()
        return people.decide(self, states=states)

    def quiet(self) -> None:
        """Nothing goes wrong any more, for as many days as evidence needs."""
        self.gateway.lag, self.gateway.deaf, self.gateway.rows = timedelta(0), False, ""
        self.gateway.falls_silent = False
        people.allow_sending(self)
        calm = 0
        for _ in range(QUIET_DAYS):
            self.pass_time(timedelta(days=1))
            assert self.night()
            people.look(self)
            waits = self.gateway.awaited() or self.open_states()
            calm = 0 if waits else calm + 1
            if calm >= (CASE_NIGHTS if self.misjudged() or self.strange else 1):
                self.decide()
                return

    @property
    def strange(self) -> bool:
        """The gateway counts refunds that are not ours, or told one number twice."""
        return any(not one.body_sha256 for one in self.gateway.happened) or self.gateway.miscounted

    def misjudged(self) -> set[str]:
        """Instructions of which nobody could know the truth in time, or said what is not true."""
        late = {(one.batch_id, one.position) for one in self.gateway.happened if one.beyond}
        late |= self.gateway.unheard
        if self.lagged:
            return set(self.states())
        return self.wrong | {wanted for wanted, place in self.carried() if place in late}

    def states(self) -> dict[str, str]:
        found = self.store.looking.execute("SELECT instruction_id, state FROM instruction")
        return dict(found.fetchall())

    def open_states(self) -> set[str]:
        """States in which evidence still has something to decide."""
        return set(self.states().values()) & {"in_flight", "in_doubt"}

    def problems(self, *, ended: bool = False) -> list[str]:
        """What the checker says of the journal now, and of what happened at all."""
        journal = self.store.looking
        lost = shrunk(self.seen, journal)
        self.seen = hashes(journal)
        known = Known(self.merchant.may_happen(), self.misjudged())
        return [
            *lost,
            *self.gateway.broken,
            *violations(journal, self.gateway.effects(), known=known, ended=ended),
        ]

    def history_hash(self) -> str:
        """One value of the whole history and everything that happened."""
        told = "".join(hashes(self.store.looking)) + repr(self.gateway.happened)
        return hashlib.sha256(told.encode()).hexdigest()

    def _alive(self, crash_at: int = 0) -> None:
        self.points, self.crash_at = [], crash_at

    def carried(self) -> list[tuple[str, tuple[str, int]]]:
        """Instructions with the place in a batch that carried each."""
        found = self.store.looking.execute("SELECT instruction_id, batch_id, position FROM attempt")
        return [(wanted, (batch_id, place)) for wanted, batch_id, place in found]

    def moved(self) -> set[str]:
        happened = {(one.batch_id, one.position) for one in self.gateway.effects()}
        return {wanted for wanted, place in self.carried() if place in happened}

    def _on_the_wire(self, body_sha256: str) -> str:
        found = self.store.looking.execute(
            "SELECT batch_id FROM batch WHERE body_sha256 = ? AND state <> 'closed'",
            (body_sha256,),
        ).fetchone()
        return found[0] if found else ""

    def _let_act(self, point: str) -> None:
        """Let somebody act here, unless the night holds the database at this point."""
        at = self.beside_at
        is_there = point == at if isinstance(at, str) else len(self.points) >= at
        if self.beside is None or not is_there or point == "before commit":
            return
        act, self.beside = self.beside, None
        points, self.points = self.points, []
        crash_at, self.crash_at = self.crash_at, 0
        act()
        self.points, self.crash_at = points, crash_at

    def _steps(self, environment: Environment, *, mode: Mode) -> None:
        self.nights += 1
        request = NightRequest(MERCHANT, ACCOUNT, date(2026, 11, 20), mode)
        run_id = f"night-{self.nights}"
        now = self.clock()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id=run_id, as_of=BEGAN, now=now)
        ingest_step.ingest(run_id, environment=environment)
        query_step.query(run_id, phase=BASELINE, environment=environment)
        settle_step.settle(run_id, environment=environment, before_money=lambda _: TIED)
        query_step.query(run_id, phase=AFTER, environment=environment)
        with environment.store.writing() as connection:
            runs.finish(connection, run_id, status="finished", problem="", now=self.clock())

    @contextmanager
    def _played(self) -> Iterator[None]:
        """The gateway of this world in place of the one over HTTP."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settle_step, "GatewayOfMoney", _Always(self.gateway))
            patch.setattr(MoneyOfRun, "send", self._sending(MoneyOfRun.send))
            patch.setattr(query, "asking", self.gateway.asking)
            patch.setattr(asyncio, "run", self.runner.run)
            patch.setattr(asyncio, "Runner", partial(nullcontext, self.runner))
            patch.setattr(files_of_a_door, "file_reader", _ReadHere)
            patch.setattr(runs, "this_process", lambda: "a played process")
            yield

    def _sending(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """The sender's pass, with a point behind the gate."""

        def send(*eligible: Any, **how: Any) -> Any:
            self.reach("behind the gate")
            return real(*eligible, **how)

        return send


class _ReadHere:
    """Reads files in this process: what a file can do to its reader is played
    by tests of the reader process.

    A process for each file took half of a schedule's time.
    """

    @contextmanager
    def read(
        self, _: Path, work: Callable[..., Any], /, **arguments: object
    ) -> Iterator[reader_process.Read]:
        with tempfile.TemporaryFile() as rows, tempfile.TemporaryFile() as facts:
            try:
                reader_process.write_facts(work(rows, **arguments), of=work, into=facts)
            except ReconError as error:
                reader_process.write_refusal(error, into=facts)
            rows.seek(0)
            yield reader_process.Read(reader_process.read_facts(facts, of=work), rows)


@dataclass(frozen=True)
class _Always:
    """Gives the same gateway whatever it is asked for."""

    gateway: PlayedGateway

    def __call__(self, *_: Any, **__: Any) -> PlayedGateway:
        return self.gateway
