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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from journal_checker import hashes, shrunk, violations
from pydantic import SecretStr
from scripted_gateway import PAYMENT, PlayedGateway, Script
from sqlalchemy import Connection

from recon.approvers import Approver
from recon.errors import StoreError, UsageError
from recon.gateway_adapter.money import GatewayOfMoney
from recon.model import InstructionKind, InstructionState, Mode, NightRequest
from recon.rules import GatewayRules, Rules
from recon.settings import GATEWAY_FILES, AccountSettings, GatewaySettings, Settings, load_tables
from recon.settlement.instruction import Instruction
from recon.settlement.planning import RULE_APPROVER, Plan
from recon.steps import query as query_step
from recon.steps import query_shards, verdicts
from recon.steps import settle as settle_step
from recon.steps.environment import Environment, id_source
from recon.steps.identity import Person
from recon.store import answers, instruction_rows, runs
from recon.store.approval_rows import Word
from recon.store.engine import Store, parse_url
from recon.store.runs import Run
from recon.uptime import Uptime

MERCHANT, ACCOUNT = "100042", "100042001"
BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
TICK = timedelta(milliseconds=250)
"""Each look at a clock takes this long, so that events have an order."""
AUTHORISED = tuple(f"A-{number}" for number in range(6))
CAPTURED = tuple(f"C-{number}" for number in range(4))
QUIET_DAYS = 10
"""After the last fault; by then a refund that nobody can see goes to people."""
PEOPLE = ("ann", "ben")
HANDED_OVER = (InstructionState.NEEDS_HUMAN,)


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
            self._looking = sqlite3.connect(f"{self.path}", isolation_level=None)
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
        sign_key=SecretStr("sandbox"),
        gateway=GatewaySettings(deadline_seconds=10),
        interface={name: load_tables(name, config_dir=None) for name in GATEWAY_FILES},
        accounts={f"{MERCHANT}/{ACCOUNT}": AccountSettings(inbox=folder, reports=folder)},
        rules=rules,
        config_dir=None,
    )


@dataclass
class World:
    """Everything there is, and the means to disturb it."""

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
    points: list[str] = field(default_factory=list)
    """Points that this night reached, in order."""
    crash_at: int = 0
    """The number of the point at which the process ends; 0 for none."""
    lose_at: int = 0
    """The number of the point at which the database goes away; 0 for none."""
    away: int = 0
    """For how many transactions it is away then."""
    nights: int = 0
    instructed: int = 0
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
        assert store.path is not None
        store.forget()
        shutil.rmtree(store.path.parent, ignore_errors=True)
        store.path.parent.mkdir()
        shutil.copyfile(template, store.path)
        real = GatewayOfMoney.of(settings, account=(MERCHANT, ACCOUNT), clock=lambda: BEGAN)
        return cls(store, settings, real, runner, seed)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.gateway = PlayedGateway(
            real=self.real,
            elapsed=lambda: self.true_time,
            now=self.clock,
            reach=self.reach,
            authorised=AUTHORISED,
            captured=CAPTURED,
        )

    @property
    def path(self) -> Path:
        """The database."""
        assert self.store.path is not None
        return self.store.path

    def clock(self) -> datetime:
        """The clock on the wall; each look takes a moment."""
        self.true_time += TICK
        return BEGAN + self.true_time + self.wall_error

    def uptime(self) -> Uptime:
        """The clock that nobody can set."""
        return Uptime("one boot", int(self.true_time.total_seconds() * 1000))

    def reach(self, point: str) -> None:
        """A point at which the process may end."""
        self.points.append(point)
        if len(self.points) == self.crash_at:
            raise Crash(point)
        if len(self.points) == self.lose_at and "commit" in point:
            self.store.away = self.away
            raise StoreError(f"the connection was lost {point}")

    @contextmanager
    def environment(self) -> Iterator[Environment]:
        """A process that just started."""
        self.store.reach = self.reach
        try:
            yield Environment(
                settings=self.settings,
                store=self.store,
                clock=self.clock,
                new_id=id_source(self.chance),
                randomness=self.chance,
                mark=self.reach,
                variables={},
                uptime=self.uptime,
                pause=self.pass_time,
            )
        finally:
            self.store.close()

    def instruct(self, kind: InstructionKind, transaction_id: str, *, amount: int) -> None:
        """A merchant asks for something, approved by rule."""
        self.instructed += 1
        wanted = Instruction(
            instruction_id=f"i{self.instructed:04}",
            natural_key=f"{kind}|{MERCHANT}|{ACCOUNT}|{transaction_id}|{amount}|EUR|n:{self.instructed}",
            merchant_id=MERCHANT,
            account_id=ACCOUNT,
            kind=kind,
            order_no=transaction_id,
            transaction_id=transaction_id,
            currency="EUR",
            amount=amount,
            payment_amount=PAYMENT,
            reason="",
            request_id="",
            file_id=None,
            line=self.instructed,
            state=InstructionState.APPROVED,
            hold="",
            attempts=0,
            baseline_status="",
            approved_by=RULE_APPROVER,
            in_doubt_since=None,
        )
        self._alive()
        with self.environment() as environment, environment.store.writing() as connection:
            instruction_rows.save_plan(
                connection, self._run("file"), plan=Plan((wanted,), ()), at=self.clock()
            )

    def night(
        self,
        *,
        scripts: Sequence[Script] = (),
        crash_at: int = 0,
        lose_at: int = 0,
        away: int = 0,
    ) -> bool:
        """One night by the real steps; False when the process ended within it.

        At `lose_at` the database goes away for `away` transactions.
        """
        self._alive(crash_at)
        self.lose_at, self.away = lose_at, away
        self.gateway.scripts = list(scripts)
        try:
            with self._played(), self.environment() as environment:
                self._steps(environment)
        except Crash:
            return False
        except StoreError:
            if not lose_at:
                raise
            return False
        finally:
            self.crash_at = self.lose_at = self.store.away = 0
        return True

    def pass_time(self, much: timedelta) -> None:
        """Wait; nothing runs."""
        self.true_time += much

    def decide(self, *, states: tuple[InstructionState, ...] = HANDED_OVER) -> int:
        """Two people look at the truth and end what is in these states; returns how many are."""
        self._alive()
        moved = {key for key, _ in self._effects_of_instructions()}
        with self.environment() as environment:
            with environment.store.reading() as connection:
                waiting = instruction_rows.in_states(connection, states=states)
            for item in waiting:
                said = "applied" if item.instruction_id in moved else "not_applied"
                for short in PEOPLE:
                    person = Person(
                        short,
                        Approver(name=short),
                        Word(short, authenticated=True, at=self.clock()),
                    )
                    with _unless_too_early():
                        verdicts.resolve(
                            item.instruction_id,
                            said=said,
                            evidence="looked it up in the portal",
                            person=person,
                            environment=environment,
                        )
        return len(waiting)

    def quiet(self) -> None:
        """Nothing goes wrong any more, for as many days as evidence needs."""
        self.gateway.lag, self.gateway.deaf = timedelta(0), False
        for _ in range(QUIET_DAYS):
            self.pass_time(timedelta(days=1))
            assert self.night()
            if not self.open_states():
                self.decide()
                return

    def states(self) -> dict[str, str]:
        """Every instruction's state."""
        found = self.store.looking.execute("SELECT instruction_id, state FROM instruction")
        return dict(found.fetchall())

    def open_states(self) -> set[str]:
        """States in which evidence still has something to decide."""
        return set(self.states().values()) & {"in_flight", "in_doubt"}

    def problems(self, *, ended: bool = False) -> list[str]:
        """What the checker says of the journal now."""
        kept = len(self.states())
        if kept != self.instructed:
            return [f"I6: {self.instructed} were instructed, the journal has {kept}"]
        journal = self.store.looking
        lost = shrunk(self.seen, journal)
        self.seen = hashes(journal)
        return [*lost, *violations(journal, self.gateway.effects(), ended=ended)]

    def history_hash(self) -> str:
        """One value of the whole history and everything that happened."""
        told = "".join(hashes(self.store.looking)) + repr(self.gateway.happened)
        return hashlib.sha256(told.encode()).hexdigest()

    def _alive(self, crash_at: int = 0) -> None:
        self.points, self.crash_at = [], crash_at

    def _effects_of_instructions(self) -> list[tuple[str, int]]:
        found = self.store.looking.execute(
            "SELECT a.instruction_id, b.body_sha256, a.position FROM attempt a "
            "JOIN batch b ON b.batch_id = a.batch_id"
        ).fetchall()
        happened = {(one.body_sha256, one.position) for one in self.gateway.effects()}
        return [(wanted, 1) for wanted, sha256, place in found if (sha256, place) in happened]

    def _steps(self, environment: Environment) -> None:
        self.nights += 1
        request = NightRequest(MERCHANT, ACCOUNT, "2026-11-20", Mode.LIVE)
        run_id = f"night-{self.nights}"
        now = self.clock()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id=run_id, as_of=BEGAN, now=now)
        query_step.query(run_id, phase=answers.BASELINE, environment=environment)
        settle_step.settle(run_id, environment=environment)
        query_step.query(run_id, phase=answers.AFTER, environment=environment)
        with environment.store.writing() as connection:
            runs.finish(connection, run_id, status="finished", problem="", now=self.clock())

    @contextmanager
    def _played(self) -> Iterator[None]:
        """The gateway of this world in place of the one over HTTP."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settle_step, "GatewayOfMoney", _Always(self.gateway))
            patch.setattr(query_shards, "ask", self.gateway.ask)
            patch.setattr(asyncio, "run", self.runner.run)
            patch.setattr(runs, "this_process", lambda: "a played process")
            yield

    def _run(self, run_id: str) -> Run:
        return Run(
            run_id=run_id,
            merchant_id=MERCHANT,
            account_id=ACCOUNT,
            business_date="2026-11-20",
            mode=Mode.LIVE,
            status="active",
            step="",
            owner="",
            started_at=BEGAN,
            as_of=BEGAN,
            verdict="",
            workbook="",
            problem="",
        )


@dataclass(frozen=True)
class _Always:
    """Gives the same gateway whatever it is asked for."""

    gateway: PlayedGateway

    def of(self, *_: Any, **__: Any) -> PlayedGateway:
        """The played one."""
        return self.gateway


@contextmanager
def _unless_too_early() -> Iterator[None]:
    """A word that came before the end of the quarantine; it can be said another day."""
    try:
        yield
    except UsageError as error:
        if "may still be carried out until" not in str(error):
            raise
