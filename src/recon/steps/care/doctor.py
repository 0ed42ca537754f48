"""`recon doctor`: is everything a night needs there? One line per check, each with what to do."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from recon.config.keys import KEY_VARIABLES, SIGNER_VARIABLE, given
from recon.config.settings import AccountSettings, Settings, load_file_settings, load_settings
from recon.instructions.queries import ask
from recon.model.errors import ConfigurationError, ReconError
from recon.model.uptime import uptime_of
from recon.model.words import Clock, KeyAnswer
from recon.steps.care import settings_told
from recon.steps.care.close_folders import closed_folders_told
from recon.steps.care.settings_told import custody_told, desk_told
from recon.steps.files.lost_facts import check_facts
from recon.steps.files.sources_told import bank_told, inbox_told, ledger_told, settlement_told
from recon.steps.ground import machine
from recon.steps.ground.environment import (
    Environment,
    account_of,
    crash_point_of,
    id_source,
    nights_clock,
    refuse_wrong_files,
)
from recon.steps.money.restore import link_missing
from recon.steps.night.lookout import watched
from recon.steps.night.notices import told_by_settings
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.money import sending_rows
from recon.workers.dask_workers import DaskWorkers, connected

NEEDED_VARIABLES = (
    ("RECON_DATABASE_URL",),
    ("RECON_GATEWAY_BASE_URL",),
    ("RECON_CONFIG_DIR",),
)
"""What a night needs from its environment; of several names one is enough."""

PROBE_ORDER = "recon-doctor-probe"
"""An order number that no shop uses; the gateway's answer about it moves nothing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    sentence: str


def checks(variables: Mapping[str, str], *, clock: Clock, randomness: Random) -> Iterator[Check]:
    """Look at configuration, database, folders, disk and gateway, in that order."""
    missing = tuple(_missing(variables))
    yield from missing
    if missing:
        return
    try:
        refuse_wrong_files(settings := load_settings(variables))
        names = ", ".join(sorted(settings.accounts)) or "none: declare them in merchants.toml"
        of_nights = nights_clock(clock, variables=variables)
        yield Check("configuration", bool(settings.accounts), f"accounts: {names}")
    except ReconError as error:
        yield Check("configuration", ok=False, sentence=str(error))
        return
    with ExitStack() as stack:
        looking = partial(
            Environment,
            settings=settings,
            clock=of_nights,
            wall_clock=clock,
            new_id=id_source(randomness),
            randomness=randomness,
            crash_point=crash_point_of(""),
            variables=variables,
            uptime=partial(uptime_of, of_nights),
        )
        yield from _of_database(settings, stack=stack, looking=looking)
    yield checked("sign key", lambda: custody_told(settings, variables=variables))
    yield checked("replies", lambda: settings_told.replies_told(settings))
    yield checked("limits", lambda: settings_told.limits_told(settings))
    yield checked("approvers", lambda: settings_told.approvers_told(settings, variables=variables))
    yield checked("desk", lambda: desk_told(settings, variables=variables))
    yield from _reached(settings, variables=variables)
    for key, account in sorted(settings.accounts.items()):
        yield from _account_checks(key, account, settings=settings, variables=variables)
    for name, bank in sorted(settings.banks.items()):
        look = partial(bank_told, bank=bank, rules=settings.rules)
        yield checked(f"bank {name}", partial(_read, bank.inbox, look))
    for key in sorted(settings.accounts):
        ask_as = partial(_gateway, settings, key=key, clock=clock, randomness=randomness)
        yield checked(f"gateway {key}", ask_as)


def _account_checks(
    key: str, account: AccountSettings, *, settings: Settings, variables: Mapping[str, str]
) -> Iterator[Check]:
    """The folders and the books of one account, with rows of each file and of the ledger."""
    look = partial(inbox_told, account=account, settings=settings)
    yield checked(f"inbox {key}", partial(_read, account.inbox, look))
    if folder := account.settlement:
        look = partial(settlement_told, account=account, settings=settings)
        yield checked(f"settlement {key}", partial(_read, folder.inbox, look))
    yield checked(f"reports {key}", partial(_writable, account.reports))
    books = partial(ledger_told, account.ledger, settings=settings, variables=variables)
    yield checked(f"ledger {key}", books)


def _read(folder: Path, look: Callable[..., str]) -> str:
    return look(Path(_folder(folder, os.R_OK)))


def _of_database(
    settings: Settings, *, stack: ExitStack, looking: Callable[..., Environment]
) -> Iterator[Check]:
    """What needs the database, which is opened once; `looking` lacks it."""
    opened: list[Store] = []
    yield (first := checked("database", lambda: _database(settings, stack=stack, opened=opened)))
    if not first.ok:
        return
    (store,) = opened
    environment = looking(store=store)
    clock, variables = environment.clock, environment.variables
    zone, config_dir = settings.rules.calendar.timezone, settings.config_dir
    looks: dict[str, Callable[[], str]] = {
        "clock": lambda: machine.clock_told(store, zone=zone, now=clock()),
        "disk": lambda: _disk(store),
        "permissions": lambda: machine.permissions_told(
            store, config_dir=config_dir, variables=variables
        ),
        "sending": lambda: _sending(store),
        "codes": lambda: settings_told.codes_told(settings, store=store),
        "notifications": lambda: settings_told.notifications_told(store),
    }
    for key, account in sorted(settings.accounts.items()):
        looks[f"history {key}"] = partial(_history, store, account.reports, key)
        looks[f"facts {key}"] = partial(check_facts, account_of(key), environment=environment)
        looks[f"closed {key}"] = partial(_closed, environment, account_of(key))
    for name, look in looks.items():
        yield checked(name, look)
    yield from _of_nights(environment)


def _of_nights(environment: Environment) -> Iterator[Check]:
    """Whether every account's nights run, and left nothing that a person must do now."""
    for account in watched(environment):
        newest = (
            f"the newest is {account.newest.business_date}"
            if account.newest
            else "none has run yet"
        )
        sentence = " ".join(account.troubles) or newest
        yield Check(f"nights {account.account}", ok=not account.troubles, sentence=sentence)


def _missing(variables: Mapping[str, str]) -> Iterator[Check]:
    """One line for every variable that has no value."""
    for names in NEEDED_VARIABLES:
        if not any(variables.get(name, "").strip() for name in names):
            yield Check(" or ".join(names), ok=False, sentence="is not set")
    if not any(given(variables, name) for name in (*KEY_VARIABLES, SIGNER_VARIABLE)):
        with suppress(ConfigurationError):  # what is wrong with the files is told below
            accounts = load_file_settings(variables).accounts.values()
            if accounts and all(account.is_own for account in accounts):
                return
        either = " or ".join((*KEY_VARIABLES, SIGNER_VARIABLE))
        yield Check(either, ok=False, sentence="is not set")


def checked(name: str, look: Callable[[], str]) -> Check:
    """A line from what looks: its sentence, or that of the error it raises."""
    try:
        return Check(name, ok=True, sentence=look())
    except ReconError as error:
        return Check(name, ok=False, sentence=str(error))


def _database(settings: Settings, *, stack: ExitStack, opened: list[Store]) -> str:
    store = stack.enter_context(closing(open_store(settings.database_url.get_secret_value())))
    opened.append(store)
    check_revision(store)
    with store.writing():
        # Only a writer meets another writer's lock.
        pass
    where = store.path
    return "reachable, safe for money, at the version this program needs" + (
        f" ({where})" if where else ""
    )


def _sending(store: Store) -> str:
    with store.reading() as connection:
        stop = sending_rows.stopped(connection)
    if stop:
        raise ReconError(str(stop))
    return "money may be sent"


def _reached(settings: Settings, *, variables: Mapping[str, str]) -> Iterator[Check]:
    """Whom a night calls beside the gateway."""
    yield checked("cluster", lambda: _cluster(settings, variables=variables))
    yield checked("notices", lambda: told_by_settings(settings, variables=variables))


def _cluster(settings: Settings, *, variables: Mapping[str, str]) -> str:
    cluster = settings.cluster
    at_once, is_beside = cluster.compared_at_once, cluster.compared_at_once > 1
    by = "workers" if cluster.address else f"{at_once} processes"
    compared = f"; comparisons by {by}" * is_beside
    if not cluster.address:
        return f"none: this {'machine' if is_beside else 'process'} does everything{compared}"
    with DaskWorkers(cluster, connect=partial(connected, cluster, variables=variables)) as workers:
        return f"{cluster.address}: {workers.in_words()}{compared}"


def _history(store: Store, reports: Path, key: str) -> str:
    if missing := link_missing(store, reports=reports, account=account_of(key)):
        raise ReconError(missing)
    return "the database has what was noted beside the reports"


def _closed(environment: Environment, account: tuple[str, str]) -> str:
    with environment.store.reading() as connection:
        return closed_folders_told(connection, account, environment=environment)


def _folder(path: Path, access: int) -> str:
    if not path.is_dir():
        msg = f"{path} does not exist or is not a folder; create it"
        raise ReconError(msg)
    if not os.access(path, access):
        msg = f"{path} is not open to this user; correct its permissions"
        raise ReconError(msg)
    return str(path)


def _writable(path: Path) -> str:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    _folder(existing, os.W_OK)
    room = machine.room_told(existing)
    if existing == path:
        return room
    return f"{path} is not there yet; the first night, or call by hand, makes it ({room})"


def _disk(store: Store) -> str:
    path = store.path
    return machine.room_told(path.parent) if path else "the database has its own on its server"


def _gateway(settings: Settings, *, key: str, clock: Clock, randomness: Random) -> str:
    merchant_id, account_id = key.split("/", 1)
    answers = asyncio.run(
        ask(
            [PROBE_ORDER],
            account=(merchant_id, account_id),
            settings=settings,
            clock=clock,
            randomness=randomness,
        )
    )
    answer, reason = answers.answers[PROBE_ORDER]
    if answer is KeyAnswer.FAILED:
        msg = f"{settings.gateway_base_url}: {reason}"
        raise ReconError(msg)
    return f"{settings.gateway_base_url} answers, accepts our signature and knows our address"
