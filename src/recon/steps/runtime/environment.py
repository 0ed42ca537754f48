"""What a step depends on: settings, an open database, a clock, randomness and crash points.

Made once per process (or per Prefect task) from environment variables; everything that would make a
night irreproducible is in here and can be replaced.
"""

import os
import random
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from recon.archive.storage import RetryDeadline
from recon.config.cluster import IN_PROCESS, Workers
from recon.config.settings import ADDRESS, FileSettings, Settings, load_settings
from recon.desk.held_keys import NO_KEYS, HeldKeys, held_keys
from recon.files.kinds.layouts import refuse_wrong_layouts, refuse_wrong_mapping
from recon.matching.codes import with_table
from recon.model.errors import ConfigurationError, UsageError
from recon.model.terms import Clock
from recon.model.uptime import UNKNOWN_BOOT, Uptime, uptime_of
from recon.notify.night_log import open_log
from recon.privacy.this_machine import is_loopback
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.database.outside_heads import HeadFile, OutsideHeads
from recon.store.nights.runs import Run
from recon.workers.dask_workers import workers_of

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SECOND = timedelta(seconds=1)
CLOCK_VARIABLE = "RECON_CLOCK_SHIFT"
"""Seconds by which the time differs from the machine's, above 0 later: only with the sandbox, whose
nights have their own dates."""
CLOCK_SHIFT_SECONDS_MAX = 20 * 366 * 86_400
CRASH_VARIABLE = "RECON_CRASH_AT"
"""`<point>:<count>` ends the process with SIGKILL at that pass of a point; for tests of crashes."""


def machine_deadline() -> RetryDeadline:
    """Retry deadline for a remote archive, by the machine's own time."""
    return RetryDeadline(pause=time.sleep, elapsed=time.monotonic)


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything a step may use besides its arguments."""

    settings: Settings
    store: Store
    clock: Clock
    new_id: Callable[[], str]
    randomness: random.Random
    crash_point: Callable[[str], None]
    variables: Mapping[str, str]
    """The environment variables, for secrets that settings only name."""
    wall_clock: Clock
    """The time on people's phones, from which their codes are made: the machine's time, even where
    the sandbox's nights have another."""
    uptime: Callable[[], Uptime]
    """A clock that nobody can set; a replayed night derives it from its own clock."""
    pause: Callable[[timedelta], None] = field(default=lambda much: time.sleep(much / SECOND))
    """Sleeps for a time."""
    workers: Workers = IN_PROCESS
    """Workers for what can be done in parts."""
    desk: HeldKeys = NO_KEYS
    """The desk's keys that this process has."""
    archive_deadline: RetryDeadline = field(default_factory=machine_deadline)
    """How long a remote archive is retried while it is busy or fails."""


@contextmanager
def environment_of(
    variables: Mapping[str, str],
    *,
    clock: Clock,
    randomness: random.Random | None = None,
    workers: Workers | None = None,
    signs: bool = True,
    check: Callable[[Store], None] = check_revision,
) -> Iterator[Environment]:
    """Open what the variables describe; closed again at the end of the block.

    `workers` are those of a caller who owns them; without them the configured ones are used.
    `signs` says whether this process needs the gateway's sign key; the desk does not. `check`
    refuses a database that this process cannot work on.

    Raises:
        ConfigurationError: a variable or file is missing or wrong.
        StoreError: the database cannot be used, or has tables of another version.
    """
    settings = load_settings(variables, signs=signs)
    settings = settings.model_copy(update={"rules": with_table(settings.rules)})
    refuse_wrong_files(settings)
    wall_clock, uptime = clock, machine_uptime
    clock = nights_clock(clock, variables=variables)
    if clock is not system_clock:
        uptime = partial(uptime_of, clock)
    open_log(variables)
    chance = randomness or random.SystemRandom()
    with ExitStack() as opened:
        url = settings.database_url.get_secret_value()
        store = opened.enter_context(closing(open_store(url, outside=outside_heads(settings))))
        check(store)
        if workers is None:
            configured = workers_of(settings.cluster, variables=variables)
            workers = opened.enter_context(configured)
        yield Environment(
            settings=settings,
            store=store,
            clock=clock,
            new_id=id_source(chance),
            randomness=chance,
            crash_point=crash_point_of(variables.get(CRASH_VARIABLE, "")),
            variables=variables,
            wall_clock=wall_clock,
            uptime=uptime,
            workers=workers,
            desk=held_keys(variables, is_sandbox=is_on_this_machine(settings)),
        )


def is_on_this_machine(settings: Settings) -> bool:
    """Whether the gateway is on a loopback address, as the sandbox is."""
    return is_loopback(urlsplit(settings.gateway_base_url).hostname or "")


def nights_clock(clock: Clock, *, variables: Mapping[str, str]) -> Clock:
    """The clock of nights: the caller's own, or the machine's, shifted as the variables say.

    Raises:
        ConfigurationError: see `clock_shift`.
    """
    if clock is not system_clock or not (shift := clock_shift(variables)):
        return clock
    return lambda: system_clock() + shift


def clock_shift(variables: Mapping[str, str]) -> timedelta:
    """Difference between the time of nights and the machine's; zero where none is configured.

    Raises:
        ConfigurationError: the gateway is not on this machine, or it is no number of seconds.
    """
    moved = variables.get(CLOCK_VARIABLE)
    if not moved:
        return timedelta()
    if not is_loopback(urlsplit(variables.get(ADDRESS, "")).hostname or ""):
        msg = (
            f"{CLOCK_VARIABLE} moves the time of the sandbox's nights only, and the gateway of "
            f"{ADDRESS} is not on this machine: unset it. Nothing was changed"
        )
        raise ConfigurationError(msg)
    try:
        shift = int(moved)
    except ValueError:
        shift = CLOCK_SHIFT_SECONDS_MAX + 1
    if abs(shift) > CLOCK_SHIFT_SECONDS_MAX:
        msg = (
            f"{CLOCK_VARIABLE} is no whole number of seconds up to {CLOCK_SHIFT_SECONDS_MAX}: "
            "unset it, or write what `recon demo` wrote into its env. Nothing was changed"
        )
        raise ConfigurationError(msg)
    return SECOND * shift


def outside_heads(settings: Settings) -> OutsideHeads:
    """The head files of all accounts, which record restrictions on money per account."""
    declared = sorted(settings.accounts.items())
    return OutsideHeads({account_of(name): HeadFile(account.reports) for name, account in declared})


def account_of(name: str) -> tuple[str, str]:
    """Merchant and account of a name in merchants.toml.

    >>> account_of("100042/100042001")
    ('100042', '100042001')
    """
    merchant_id, account_id = name.split("/", 1)
    return merchant_id, account_id


def named_accounts(
    settings: Settings | FileSettings, *, merchant: str, account: str
) -> list[tuple[str, str]]:
    """The accounts that are named, or all; `account` may be `merchant/account`, too.

    Raises:
        UsageError: none fits.
    """
    every = [account_of(name) for name in sorted(settings.accounts)]
    chosen = [
        which
        for which in every
        if merchant in {"", which[0]} and account in {"", which[1], "/".join(which)}
    ]
    if not chosen:
        named = ", ".join("/".join(which) for which in every) or "none"
        pattern = account if "/" in account else f"{merchant or '*'}/{account or '*'}"
        msg = f"no declared account is {pattern}; declared: {named}"
        raise UsageError(msg)
    return chosen


def one_account(
    settings: Settings | FileSettings, *, merchant: str, account: str
) -> tuple[str, str]:
    """The one account that the options name.

    Raises:
        UsageError: none fits, or several do.
    """
    every = named_accounts(settings, merchant=merchant, account=account)
    if len(every) > 1:
        named = ", ".join("/".join(which) for which in every)
        msg = f"say which account it is (--merchant, --account): {named}"
        raise UsageError(msg)
    return every[0]


def refuse_wrong_files(settings: Settings) -> None:
    """Refuse layouts and ledger mappings that could never be read, before any night starts.

    Raises:
        ConfigurationError: naming the layout and the key.
    """
    for account in settings.accounts.values():
        refuse_wrong_layouts(account.layouts)
        if account.settlement is not None:
            refuse_wrong_layouts(account.settlement.layouts, of="settlement")
        if account.ledger is not None:
            refuse_wrong_mapping(account.ledger)
    for bank in settings.banks.values():
        refuse_wrong_layouts(bank.layouts, of="bank")


def system_clock() -> datetime:
    """The machine's time, read here only; passed in by the outermost caller."""
    return datetime.now(UTC)


def machine_uptime() -> Uptime:
    """The machine's own uptime; passed in by the outermost caller."""
    try:
        boot_id = BOOT_ID.read_text().strip()
    except OSError:
        boot_id = UNKNOWN_BOOT
    return Uptime(boot_id, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)


def id_source(randomness: random.Random) -> Callable[[], str]:
    """A maker of ids from a source of randomness; the same seed gives the same ids."""

    def new_id() -> str:
        return uuid.UUID(int=randomness.getrandbits(128), version=4).hex[:20]

    return new_id


def crash_point_of(point: str) -> Callable[[str], None]:
    """A crash point that ends the process at the named pass, or does nothing."""
    name, _, count = point.partition(":")
    passes: dict[str, int] = {}

    def pass_by(at: str) -> None:
        passes[at] = passes.get(at, 0) + 1
        if at == name and passes[at] == int(count or "1"):
            os.kill(os.getpid(), signal.SIGKILL)

    return pass_by


DISK_FREE_MIN_BYTES = 200 * 1024 * 1024
"""Free disk space that a night needs before it begins, also checked by the doctor."""
REPORTED_TO_END = (signal.SIGTERM, signal.SIGINT)


def seconds_left(run: Run, *, environment: Environment) -> float:
    """Seconds for which a run may still query the gateway and send; at most those of a whole night.

    The caller measures them by a clock that nobody can set; the time of nights may be set back.
    """
    limit = environment.settings.gateway.night_deadline_seconds
    passed = (environment.clock() - run.started_at).total_seconds()
    return limit - max(passed, 0.0)


@contextmanager
def held_back() -> Iterator[Callable[[], str]]:
    """Hold back SIGTERM and SIGINT; yields a function for the name of one received, "" without.

    Outside the main thread no signal can be held back, and none is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: ""
        return
    received: list[int] = []
    before = {
        signal_: signal.signal(signal_, lambda number, _: received.append(number))
        for signal_ in REPORTED_TO_END
    }
    try:
        yield lambda: signal.Signals(received[0]).name if received else ""
    finally:
        for signal_, listener in before.items():
            signal.signal(signal_, listener)
        if received:
            signal.raise_signal(received[0])


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM end this process as Ctrl-C does, so that open resources are closed.

    Where another handler is installed (Prefect has one), it stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
