"""`recon doctor`: check everything a night needs. One line per check, each with what to do.

`IN_THE_DATABASE` and `IN_THE_SETTINGS` list the checks: name, function, and what each is run for.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from recon.config.cluster import IN_PROCESS
from recon.config.file_layouts import FileLayout, layout_of
from recon.config.file_sources import FileFolder
from recon.config.keys import (
    KEY_VARIABLES,
    SIGNER_VARIABLE,
    given,
    keys_in_environment,
)
from recon.config.rules import Rules
from recon.config.settings import (
    Settings,
    load_file_settings,
    load_settings,
)
from recon.desk.held_keys import PRIVATE, SANDBOX_KEYS, SET_UP, SOCKET, held_keys
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_reader import SUFFIXES
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.files.kinds.sql_ledger import read_ledger
from recon.files.reader import bank_file, ledger_file
from recon.gateway_client import UnsignedError
from recon.instructions.account import SignerSocket
from recon.instructions.queries import ask
from recon.model.errors import ConfigurationError, ReconError, SourceUnreadableError
from recon.model.terms import Clock, GatewayState, KeyAnswer, Reject, SourceFile
from recon.notify.night_log import LOG_VARIABLE
from recon.privacy.own_servers import is_heard
from recon.steps.files.lost_facts import check_facts
from recon.steps.files.order_files import check_file, check_settlement_file
from recon.steps.money.gate import link_missing
from recon.steps.night.monitor import watched
from recon.steps.night.notices import reported_by_settings
from recon.steps.runtime.environment import (
    DISK_FREE_MIN_BYTES,
    Environment,
    account_of,
    environment_of,
    is_on_this_machine,
    refuse_wrong_files,
)
from recon.steps.runtime.identity import code_secret
from recon.store.database.engine import Store
from recon.store.database.migrate import check_revision
from recon.store.money import sending_rows
from recon.store.nights import notification_rows, order_rows, runs
from recon.store.nights.answer_parts import CodeCount, code_counts
from recon.workers.dask_workers import DaskWorkers

NEEDED_VARIABLES = ("RECON_DATABASE_URL", "RECON_GATEWAY_BASE_URL", "RECON_CONFIG_DIR")
"""Environment variables that a night needs, besides a key."""
PROBE_ORDER = "recon-doctor-probe"
"""An order number that no shop uses; querying it changes nothing at the gateway."""
CLOCK_BACK_MAX = timedelta(minutes=1)
LEDGER_ROWS_MAX = 10
"""Rows read of a ledger's query; a night reads them all."""
FILES_READ_MAX = 20
"""How many files of an inbox are read, the newest ones."""
FILE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files are not read, since people wait for the doctor."""
NO_LEDGER = "none: the verdict is never better than INCOMPLETE (merchants.toml, ledger)"
ALL_MAPPED = "every code seen so far is mapped"
RUN_OF_PREFECT = "PREFECT__FLOW_RUN_ID"
"""Prefect's worker sets it for the processes that it starts."""
SERVER_OF_PREFECT = "PREFECT_API_URL"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    sentence: str


def checked(name: str, look: Callable[[], str]) -> Check:
    """Return the check of a function: its sentence, or the message of the ReconError it raises."""
    try:
        return Check(name, ok=True, sentence=look())
    except ReconError as error:
        return Check(name, ok=False, sentence=str(error))


@dataclass(frozen=True, slots=True)
class Examined:
    """The input of the checks that need no database."""

    settings: Settings
    variables: Mapping[str, str]
    clock: Clock
    randomness: Random
    taken: Collection[str] = ()
    """SHA-256 of files from which nights took rows, and whose other rows they already reported."""


def checks(variables: Mapping[str, str], *, clock: Clock, randomness: Random) -> Iterator[Check]:
    """Yield the checks of configuration, database, folders, disk and gateway, in that order."""
    missing = tuple(_missing(variables))
    yield from missing
    if missing:
        return
    try:
        refuse_wrong_files(settings := load_settings(variables))
    except ReconError as error:
        yield Check("configuration", ok=False, sentence=str(error))
        return
    names = ", ".join(sorted(settings.accounts)) or "none: declare them in merchants.toml"
    yield Check("configuration", bool(settings.accounts), f"accounts: {names}")
    opened = environment_of(
        variables, clock=clock, randomness=randomness, workers=IN_PROCESS, check=_refuse_database
    )
    place = Examined(settings, variables, clock, randomness)
    with ExitStack() as stack:
        try:
            environment = stack.enter_context(opened)
        except ReconError as error:
            yield Check("database", ok=False, sentence=str(error))
        else:
            where = f" ({path})" if (path := environment.store.path) else ""
            sentence = f"reachable, safe for money, at the version this program needs{where}"
            yield Check("database", ok=True, sentence=sentence)
            yield from _lines(IN_THE_DATABASE, environment)
            with environment.store.reading() as connection:
                place = replace(place, taken=order_rows.contents_ingested(connection))
            for account in watched(environment):
                last, troubles = account.newest, " ".join(account.troubles)
                newest = f"the newest is {last.business_date}" if last else "none has run yet"
                yield Check(f"nights {account.account}", not troubles, troubles or newest)
        yield from _lines(IN_THE_SETTINGS, place)


def _missing(variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield a failed check for every variable that has no value."""
    for name in NEEDED_VARIABLES:
        if not given(variables, name):
            yield Check(name, ok=False, sentence="is not set")
    if not any(given(variables, name) for name in (*KEY_VARIABLES, SIGNER_VARIABLE)):
        with suppress(ConfigurationError):  # problems with the files are reported below
            accounts = load_file_settings(variables).accounts.values()
            if accounts and all(account.is_own for account in accounts):
                return
        either = " or ".join((*KEY_VARIABLES, SIGNER_VARIABLE))
        yield Check(either, ok=False, sentence="is not set")


def _refuse_database(store: Store) -> None:
    check_revision(store)
    with store.writing():
        pass  # only a writer detects another writer's lock


def _clock(environment: Environment, _: str) -> str:
    """Compare our clock with the newest run in the database, and name the time zone of nights."""
    with environment.store.reading() as connection:
        newest = next((run.started_at for run in runs.newest(connection, count=1)), None)
    now, zone = environment.clock(), environment.settings.rules.calendar.timezone
    clock = f"{now:%Y-%m-%d %H:%M:%S} UTC, business dates in {zone}"
    if newest is not None and newest - now > CLOCK_BACK_MAX:
        msg = (
            f"{clock}; but a run began at {newest:%Y-%m-%d %H:%M} UTC, which is still to come: set "
            "this machine's clock (NTP)"
        )
        raise ReconError(msg)
    return clock


def _disk(environment: Environment, _: str) -> str:
    path = environment.store.path
    return _room(path.parent) if path else "the database has its own on its server"


def _room(path: Path) -> str:
    """Return how much space a disk has left; fails below what a night needs free."""
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        msg = f"{path} cannot be looked at ({error.strerror})"
        raise ReconError(msg) from None
    if free < DISK_FREE_MIN_BYTES:
        needed = DISK_FREE_MIN_BYTES // 1024**2
        msg = f"{path}: only {free // 1024**2} MiB are free; a night needs {needed}"
        raise ReconError(msg)
    return f"{path}, {free // 1024**3} GiB free"


def _permissions(environment: Environment, _: str) -> str:
    """Check that nobody else can change the configuration, or read and change the database file."""
    path, config_dir = environment.store.path, environment.settings.config_dir
    config = [config_dir, *sorted(config_dir.glob("*.toml"))] if config_dir else []
    # True if others can enter the folder of a SQLite database; its other files have the same mode.
    is_reached = path is not None and path.parent.stat().st_mode & stat.S_IXOTH
    database = [path] if path is not None and is_reached else []
    cures = [
        f"chmod {cure} {path}"
        for paths, mode, cure in ((config, stat.S_IWOTH, "o-w"), (database, stat.S_IRWXO, "o-rwx"))
        for path in paths
        if path.stat().st_mode & mode
    ]
    if cures:
        msg = f"others on this machine could read or change what decides: {'; '.join(cures)}"
        raise ReconError(msg)
    log = environment.variables.get(LOG_VARIABLE, "").strip()
    return f"user {os.geteuid()}; others change nothing; " + (
        f"nights are logged in {log}" if log else f"no log for machines ({LOG_VARIABLE})"
    )


def _sending(environment: Environment, _: str) -> str:
    with environment.store.reading() as connection:
        stop = sending_rows.stopped(connection)
    if stop:
        raise ReconError(str(stop))
    return "money may be sent"


def _codes(environment: Environment, _: str) -> str:
    """Return which codes of stored answers are not mapped, over all accounts."""
    settings = environment.settings
    unmapped = {
        f"{found.field} {found.code}"
        for key in settings.accounts
        for found in unmapped_codes(
            environment.store, rules=settings.rules, account=account_of(key)
        )
    }
    if not unmapped:
        return ALL_MAPPED
    named = ", ".join(sorted(unmapped))
    return f"not mapped: {named}; `recon gateway doctor` prints the lines for rules.toml"


def unmapped_codes(store: Store, *, rules: Rules, account: tuple[str, str]) -> list[CodeCount]:
    """Return the codes of an account's stored answers that rules.toml does not have.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as connection:
        found = code_counts(connection, account)
    unknown = {
        "payment_status": lambda code: rules.state_of(code) is GatewayState.UNMAPPED,
        "query_result": lambda code: rules.answer_of(code) is KeyAnswer.UNMAPPED,
    }
    return [code for code in found if unknown[code.field](code.code)]


def _notifications(environment: Environment, _: str) -> str:
    with environment.store.reading() as connection:
        counts = notification_rows.counts(connection)
    stored = counts.pop("stored")
    rejected = ", ".join(f"{count} {problem}" for problem, count in counts.items())
    return f"{stored} kept, " + (f"refused: {rejected}" if rejected else "none refused")


def _history(environment: Environment, key: str) -> str:
    reports = environment.settings.accounts[key].reports
    if missing := link_missing(environment.store, reports=reports, account=account_of(key)):
        raise ReconError(missing)
    return "the database has what was noted beside the reports"


def refuse_plain_key(settings: Settings, *, variables: Mapping[str, str]) -> None:
    """Refuse a sign key in the environment of a run that Prefect started for real money.

    Raises:
        ConfigurationError: there is one, and gateway.toml does not allow that.
    """
    named = _in_reach(settings, variables=variables)
    if named and not settings.gateway.plain_key_under_prefect:
        msg = (
            f"{', '.join(named)} holds the sign key in the environment of what Prefect starts, "
            "where everybody who may start a run could read it; nothing was sent: let `recon "
            f"serve signer` hold it and name its socket in {SIGNER_VARIABLE} (docs/SECURITY.md), "
            "or put it into a file (RECON_SIGN_KEY_FILE), or accept it with "
            "plain_key_under_prefect = true in gateway.toml"
        )
        raise ConfigurationError(msg)


def _in_reach(settings: Settings, *, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return variables with a key for real money; none where the gateway is on this machine."""
    if is_on_this_machine(settings):
        return ()
    return keys_in_environment(variables, accounts=settings.accounts)


def sign_key(place: Examined, _: str) -> str:
    """Return where the sign key is held and how well it is protected, in a sentence.

    Raises:
        ConfigurationError: nothing can sign, or nights started by Prefect would be refused.
    """
    settings, variables = place.settings, place.variables
    if (signer := settings.sign_keys.signer) is not None:
        try:
            health = SignerSocket(signer).health()
        except UnsignedError as error:
            raise ConfigurationError(str(error)) from error
        if missing := sorted(set(settings.accounts) - set(health.get("accounts", ()))):
            msg = f"the signer at {signer} signs nothing for {', '.join(missing)}"
            raise ConfigurationError(msg)
        if health.get("uid") == os.geteuid():
            return (
                f"with the signer at {signer}, of this same user: in no environment, but a program "
                "of this user could read the signer's files; give it a user of its own"
            )
        return f"with the signer at {signer}, of another user: nothing here reads it"
    if named := _in_reach(settings, variables=variables):
        if variables.get(SERVER_OF_PREFECT):
            refuse_plain_key(settings, variables=variables)
        return (
            f"WARNING: in the environment ({', '.join(named)}): whatever runs as this user reads "
            f"it; a signer would keep it apart ({SIGNER_VARIABLE}, docs/SECURITY.md)"
        )
    if keys_in_environment(variables, accounts=settings.accounts):
        return "in the environment; the gateway is on this machine, so it protects nothing real"
    return (
        "in a file that this user reads, and in no environment: a program of this user could read "
        f"it, too; a signer of another user keeps it apart ({SIGNER_VARIABLE})"
    )


def _replies(place: Examined, _: str) -> str:
    """Return profile and policy of replies; fails if a live night would refuse to send under it."""
    gateway = place.settings.gateway
    sentence = f"profile {gateway.profile}, reply_signatures {gateway.reply_signatures}"
    if gateway.reply_signatures == "enforce":
        return sentence
    if gateway.allow_unverified_replies:
        return f"{sentence}: unverified replies are allowed, so anybody on the way could forge one"
    msg = f'{sentence}: no live night will send; set "enforce", or allow_unverified_replies = true'
    raise ConfigurationError(msg)


def _limits(place: Examined, _: str) -> str:
    """Return the currencies with a limit; fails without any where a rule approves real money."""
    settings = place.settings
    limits = settings.limits
    general = sorted(limits.limits)
    own = sorted(f"{key} {currency}" for key, of in limits.accounts.items() for currency in of)
    if general or own:
        others = "none" if settings.is_sandbox else "none: what they ask for waits for two people"
        return f"set for {', '.join([*general, *own])}; other currencies have {others}"
    if settings.is_sandbox:
        return "none set, and the sandbox needs none"
    people = "every instruction waits for two people, and nothing bounds what they approve"
    if not any(account.auto_approve for account in settings.accounts.values()):
        return f"none set: {people} (auto_approve = false)"
    msg = f"none set: {people}; set `night` and `item` for each currency in limits.toml"
    raise ConfigurationError(msg)


def _approvers(place: Examined, _: str) -> str:
    """Return who may approve, and which of them cannot be authenticated."""
    people, variables = place.settings.approvers, place.variables
    if not people:
        return "nobody is declared: what waits for a person waits for ever (approvers.toml)"
    sentence = f"declared: {', '.join(sorted(people))}"
    if given(variables, SOCKET):
        return f"{sentence}; their codes are checked at the desk"
    lost, bare = [], []
    for short, each in sorted(people.items()):
        try:
            if code_secret(each, short=short, variables=variables) is None:
                bare.append(short)
        except ConfigurationError:
            lost.append(short)
    if lost:
        msg = f"the one-time-code secret of {', '.join(lost)} is named but not there"
        raise ConfigurationError(msg)
    return sentence + f"; without a code, so not authenticated: {', '.join(bare)}" * bool(bare)


def desk(place: Examined, _: str) -> str:
    """Return which key the approvals service uses, where it is reached, and what is exposed here.

    Raises:
        ConfigurationError: no decision can be verified, no service listens at its socket, or this
            process can read what only the service should have.
    """
    settings, variables = place.settings, place.variables
    held = held_keys(variables, is_sandbox=is_on_this_machine(settings))
    if held.public is None:
        msg = (
            f"nobody's signature can be checked, so nothing that waits for people is sent: {SET_UP}"
        )
        raise ConfigurationError(msg)
    if held is SANDBOX_KEYS:
        return "the sandbox's own key, which everybody knows: right for trying out only"
    if not given(variables, SOCKET):
        if held.private is None:
            return f"key {held.name}; checks decisions, takes none here ({SOCKET} is not set)"
        return (
            f"key {held.name}, held by this very process: whoever has this login can decide for "
            "everybody; `recon serve desk` under a login of its own is the barrier"
        )
    path = Path(variables[SOCKET])
    if not is_heard(path):
        msg = f"no desk listens at {path}: start `recon serve desk`; until then nobody decides"
        raise ConfigurationError(msg)
    open_to_us = [PRIVATE] * bool(given(variables, PRIVATE))
    open_to_us += sorted(
        f"the code secret of {short}"
        for short, person in settings.approvers.items()
        if given(variables, person.code_secret_env or "-")
    )
    if open_to_us:
        msg = (
            f"this process has {', '.join(open_to_us)}, which the desk alone should have: take it "
            "out of these variables"
        )
        raise ConfigurationError(msg)
    return f"key {held.name}; decisions are taken at {path}"


def _cluster(place: Examined, _: str) -> str:
    cluster = place.settings.cluster
    at_once, is_alongside = cluster.compared_at_once, cluster.compared_at_once > 1
    by = "workers" if cluster.address else f"{at_once} processes"
    compared = f"; comparisons by {by}" * is_alongside
    if not cluster.address:
        return f"none: this {'machine' if is_alongside else 'process'} does everything{compared}"
    with DaskWorkers(cluster) as workers:
        return f"{cluster.address}: {workers.as_text()}{compared}"


Found = tuple[SourceFile, Sequence[Reject]]


def _files(place: Examined, key: str, *, is_settled: bool = False) -> str:
    account = place.settings.accounts[key]
    folder: FileFolder | None = account.settlement if is_settled else account
    check = check_settlement_file if is_settled else check_file
    if folder is None:
        return ""

    def look(path: Path) -> Found:
        found = check(path, account=account, settings=place.settings)
        return found.source, found.rejects

    return _inbox(place, folder.inbox, layouts=folder.layouts, look=look)


def _bank(place: Examined, name: str) -> str:
    bank, rules = place.settings.banks[name], place.settings.rules

    def entries(path: Path) -> Found:
        layout = layout_of(path.name, layouts=bank.layouts)
        with bank_file(path, rules=rules, layout=layout) as read:
            return read.facts.source_file, ()

    return _inbox(place, bank.inbox, layouts=bank.layouts, endings=ENDINGS, look=entries)


def _inbox(
    place: Examined,
    folder: Path,
    *,
    layouts: tuple[FileLayout, ...],
    look: Callable[[Path], Found],
    endings: tuple[str, ...] = SUFFIXES,
) -> str:
    """Return how the inbox files that no night has used yet would be read."""
    files = inbox(_open_folder(folder, os.R_OK), layouts=layouts, endings=endings).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    small = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    new = [path for path in small if sha256_of(path) not in place.taken]
    wrong, taken, rejected = [], 0, 0
    for path in new:
        try:
            source, rejects = look(path)
        except SourceUnreadableError as error:
            wrong.append(str(error))
            continue
        taken, rejected = taken + source.rows_accepted, rejected + source.rows_rejected
        if rejects and not source.rows_accepted:
            wrong.append(f"{path.name}: every row would be refused; {_first(rejects)}")
    if wrong:
        raise ReconError("; ".join(wrong))
    sentence = f"{folder}, {len(files)} files"
    if known := len(small) - len(new):
        sentence += f", {known} of them taken by nights"
    if len(small) < len(files):
        sentence += f", {len(files) - len(small)} not read here"
    return sentence + f": {taken} rows can be taken, {rejected} would be refused" * bool(new)


def _first(rejects: Sequence[Reject]) -> str:
    return f"the first in line {rejects[0].line}, {rejects[0].column}: {rejects[0].reason}"


def _ledger(place: Examined, key: str) -> str:
    """Return how many rows of the ledger were read and are acceptable."""
    source, rules = place.settings.accounts[key].ledger, place.settings.rules
    if source is None:
        return NO_LEDGER
    if source.path is not None:
        if not source.path.is_file():
            msg = f"{source.path} is not a file; put the ledger there, or correct `ledger`"
            raise ReconError(msg)
        if source.path.stat().st_size > FILE_BYTES_MAX:
            return f"{source.path}, too large to be read here"
        with ledger_file(source, rules=rules) as read:
            file, rejects = read.facts.source_file, read.facts.rejects
    else:
        ledger = read_ledger(
            source, environment=place.variables, rules=rules, rows_max=LEDGER_ROWS_MAX
        )
        file, rejects = ledger.source_file, ledger.rejects
    sentence = f"{file.name}: {file.rows_accepted} of {file.rows_read} rows read can be taken"
    if rejects:
        msg = f"{sentence}, {file.rows_rejected} would be refused; {_first(rejects)}"
        raise ReconError(msg)
    return sentence


def _reports(place: Examined, key: str) -> str:
    path = place.settings.accounts[key].reports
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    room = _room(_open_folder(existing, os.W_OK))
    if existing == path:
        return room
    return f"{path} is not there yet; the first night, or call by hand, makes it ({room})"


def _open_folder(path: Path, access: int) -> Path:
    if not path.is_dir():
        msg = f"{path} does not exist or is not a folder; create it"
        raise ReconError(msg)
    if not os.access(path, access):
        msg = f"{path} is not open to this user; correct its permissions"
        raise ReconError(msg)
    return path


def _gateway(place: Examined, key: str) -> str:
    settings = place.settings
    asking = ask(
        [PROBE_ORDER],
        account=account_of(key),
        settings=settings,
        clock=place.clock,
        randomness=place.randomness,
    )
    answer, reason = asyncio.run(asking).answers[PROBE_ORDER]
    if answer is KeyAnswer.FAILED:
        msg = f"{settings.gateway_base_url}: {reason}"
        raise ReconError(msg)
    return f"{settings.gateway_base_url} answers, accepts our signature and knows our address"


Of = TypeVar("Of", Environment, Examined)
Line = tuple[str, Callable[[Of, str], str], Callable[[Settings], Iterable[str]]]
"""The check's name; the function that returns its sentence, "" for nothing to show, or raises a
ReconError; and what it is run for, one line each: nothing (""), accounts or banks."""


def _once(_: Settings) -> Iterable[str]:
    return ("",)


def _accounts(settings: Settings) -> Iterable[str]:
    return sorted(settings.accounts)


IN_THE_DATABASE: Sequence[Line[Environment]] = (
    ("clock", _clock, _once),
    ("disk", _disk, _once),
    ("permissions", _permissions, _once),
    ("sending", _sending, _once),
    ("codes", _codes, _once),
    ("notifications", _notifications, _once),
    ("history", _history, _accounts),
    ("facts", lambda place, key: check_facts(account_of(key), environment=place), _accounts),
)
IN_THE_SETTINGS: Sequence[Line[Examined]] = (
    ("sign key", sign_key, _once),
    ("replies", _replies, _once),
    ("limits", _limits, _once),
    ("approvers", _approvers, _once),
    ("desk", desk, _once),
    ("cluster", _cluster, _once),
    ("notices", lambda at, _: reported_by_settings(at.settings, variables=at.variables), _once),
    ("inbox", _files, _accounts),
    ("settlement", partial(_files, is_settled=True), _accounts),
    ("reports", _reports, _accounts),
    ("ledger", _ledger, _accounts),
    ("bank", _bank, lambda settings: sorted(settings.banks)),
    ("gateway", _gateway, _accounts),
)


def _lines(table: Sequence[Line[Of]], place: Of) -> Iterator[Check]:
    for name, look, of_each in table:
        for of in of_each(place.settings):
            line = checked(f"{name} {of}".rstrip(), partial(look, place, of))
            if line.sentence:
                yield line
