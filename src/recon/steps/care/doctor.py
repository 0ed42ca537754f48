"""`recon doctor`: is everything a night needs there? One line per check, each with what to do."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path
from random import Random

from recon.config.approvers import Approver
from recon.config.cluster import ClusterSettings
from recon.config.file_layouts import FileLayout, layout_of
from recon.config.file_sources import BankFolder, LedgerSource
from recon.config.keys import (
    KEY_VARIABLES,
    SIGNER_VARIABLE,
    given,
    key_of_file,
    keys_in_environment,
)
from recon.config.rules import Rules
from recon.config.settings import (
    AccountSettings,
    FileSettings,
    Settings,
    load_file_settings,
    load_settings,
)
from recon.desk.held_keys import PRIVATE, SANDBOX_KEYS, SET_UP, SOCKET, held_keys
from recon.files.formats.raw_reader import SUFFIXES
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.files.kinds.ledger_file import read_ledger
from recon.files.reader import bank_facts, ledger_file
from recon.gateway_client import UnsignedError
from recon.instructions.account import SignerSocket
from recon.instructions.queries import ask
from recon.model.errors import ConfigurationError, ReconError, SourceUnreadableError
from recon.model.uptime import uptime_of
from recon.model.words import Clock, GatewayState, KeyAnswer, Reject, SourceFile
from recon.privacy.own_servers import is_heard
from recon.steps.files.lost_facts import check_facts
from recon.steps.files.order_files import CheckedFile, check_file, check_settlement_file
from recon.steps.ground.environment import (
    Environment,
    account_of,
    crash_point_of,
    id_source,
    is_on_this_machine,
    nights_clock,
    refuse_wrong_files,
)
from recon.steps.ground.machine import clock_told, permissions_told, room_told
from recon.steps.money.gate import link_missing
from recon.steps.month.folders import closed_folders_told
from recon.steps.night.monitor import watched
from recon.steps.night.notices import told_by_settings
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.money import sending_rows
from recon.store.nights import notification_rows
from recon.store.nights.answer_parts import SeenCode, codes_seen
from recon.workers.dask_workers import DaskWorkers


def replies_told(settings: Settings) -> str:
    """Profile and policy of replies.

    Raises:
        ConfigurationError: a live night would refuse to send under this policy.
    """
    gateway = settings.gateway
    sentence = f"profile {gateway.profile}, reply_signatures {gateway.reply_signatures}"
    if gateway.reply_signatures == "enforce":
        return sentence
    if gateway.allow_unverified_replies:
        return f"{sentence}: unverified replies are allowed, so anybody on the way could forge one"
    msg = f'{sentence}: no live night will send; set "enforce", or allow_unverified_replies = true'
    raise ConfigurationError(msg)


def limits_told(settings: Settings) -> str:
    """Which currencies have a limit, and what becomes of the others.

    Raises:
        ConfigurationError: none has, so that no night can send by itself what files ask for.
    """
    limits = settings.limits
    general = sorted(limits.limits)
    own = sorted(f"{key} {currency}" for key, of in limits.accounts.items() for currency in of)
    if general or own:
        others = "none" if settings.is_sandbox else "none: what they ask for waits for two people"
        return f"set for {', '.join([*general, *own])}; other currencies have {others}"
    if settings.is_sandbox:
        return "none set, and the sandbox needs none"
    people = "every instruction waits for two people, and nothing bounds what they let go"
    if not any(account.auto_approve for account in settings.accounts.values()):
        return f"none set: {people} (auto_approve = false)"
    msg = f"none set: {people}; set `night` and `item` for each currency in limits.toml"
    raise ConfigurationError(msg)


def approvers_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Who may approve, and who of them cannot be authenticated.

    Raises:
        ConfigurationError: a secret that approvers.toml names is not there.
    """
    people = settings.approvers
    if not people:
        return "nobody is declared: what waits for a person waits for ever (approvers.toml)"
    sentence = f"declared: {', '.join(sorted(people))}"
    if given(variables, SOCKET):
        return f"{sentence}; their codes are checked at the desk"
    named = {short: _secret_of(each, variables=variables) for short, each in people.items()}
    if lost := sorted(short for short, secret in named.items() if secret == ""):
        msg = f"the one-time-code secret of {', '.join(lost)} is named but not there"
        raise ConfigurationError(msg)
    bare = sorted(short for short, secret in named.items() if secret is None)
    return sentence + f"; without a code, so not authenticated: {', '.join(bare)}" * bool(bare)


def _secret_of(approver: Approver, *, variables: Mapping[str, str]) -> str | None:
    """The secret of an approver's codes; "" of one that is not there, None where none is named."""
    if approver.code_secret_file is not None:
        try:
            return key_of_file(approver.code_secret_file)
        except ReconError:
            return ""
    if not approver.code_secret_env:
        return None
    return variables.get(approver.code_secret_env, "").strip()


def codes_told(settings: Settings, *, store: Store) -> str:
    """How many codes of stored answers nobody has mapped, over all accounts.

    Raises:
        StoreError: the database cannot be read.
    """
    unmapped = {
        f"{seen.field} {seen.code}"
        for key in settings.accounts
        for seen in unmapped_codes(store, rules=settings.rules, account=account_of(key))
    }
    if not unmapped:
        return ALL_MAPPED
    named = ", ".join(sorted(unmapped))
    return f"not mapped: {named}; `recon gateway doctor` prints the lines for rules.toml"


def unmapped_codes(store: Store, *, rules: Rules, account: tuple[str, str]) -> list[SeenCode]:
    """Codes of an account's stored answers that rules.toml does not have.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as connection:
        seen = codes_seen(connection, account)
    unknown = {
        "payment_status": lambda code: rules.state_of(code) is GatewayState.UNMAPPED,
        "query_result": lambda code: rules.answer_of(code) is KeyAnswer.UNMAPPED,
    }
    return [code for code in seen if unknown[code.field](code.code)]


def desk_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Which key counts, where people are heard, and what this process has that it should not.

    Raises:
        ConfigurationError: nobody's word can count, no desk listens where one is named, or this
            process can read what the desk alone should have.
    """
    held = held_keys(variables, is_sandbox=is_on_this_machine(settings))
    if held.public is None:
        msg = f"nobody's word can be checked, so nothing that waits for people is sent: {SET_UP}"
        raise ConfigurationError(msg)
    if held is SANDBOX_KEYS:
        return "the sandbox's own key, which everybody knows: right for trying out only"
    if not given(variables, SOCKET):
        if held.private is None:
            return (
                f"key {held.name}; words are checked here and heard elsewhere ({SOCKET} is not set)"
            )
        return (
            f"key {held.name}, held by this very process: whoever has this login can speak for "
            "everybody; `recon desk` under a login of its own is the barrier"
        )
    path = Path(variables[SOCKET])
    if not is_heard(path):
        msg = f"no desk listens at {path}: start `recon desk`; until then nobody is heard"
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
    return f"key {held.name}; people are heard at {path}"


ALL_MAPPED = "every code seen so far is mapped"
RUN_OF_PREFECT = "PREFECT__FLOW_RUN_ID"
"""Prefect's worker gives it to the processes that it starts."""
SERVER_OF_PREFECT = "PREFECT_API_URL"


def refuse_plain_key(settings: Settings, *, variables: Mapping[str, str]) -> None:
    """A run that Prefect started, for real money, has no sign key in its environment.

    Raises:
        ConfigurationError: it has one, and gateway.toml does not allow that.
    """
    named = _in_reach(settings, variables=variables)
    if named and not settings.gateway.plain_key_under_prefect:
        msg = (
            f"{', '.join(named)} holds the sign key in the environment of what Prefect starts, "
            "where everybody who may start a run could read it; nothing was sent: let `recon "
            f"signer` hold it and name its socket in {SIGNER_VARIABLE} (docs/SECURITY.md), or put "
            "it into a file (RECON_SIGN_KEY_FILE), or accept it with plain_key_under_prefect = "
            "true in gateway.toml"
        )
        raise ConfigurationError(msg)


def custody_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Which set-up this is, in a sentence.

    Raises:
        ConfigurationError: nobody signs, or nights of Prefect would be refused.
    """
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


def _in_reach(settings: Settings, *, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Variables with a key of real money; none where the gateway is on this machine."""
    if is_on_this_machine(settings):
        return ()
    return keys_in_environment(variables, accounts=settings.accounts)


LEDGER_ROWS_MAX = 10
"""Rows of a ledger's query; a night reads them all."""
FILES_READ_MAX = 20
"""Files of an inbox that are read; the newest ones."""
FILE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files are not read: people wait for the doctor."""
NO_LEDGER = "none: the verdict is never better than INCOMPLETE (merchants.toml, ledger)"


def ledger_told(
    source: LedgerSource | None, *, settings: Settings, variables: Mapping[str, str]
) -> str:
    """How many of the ledger's rows were read and taken.

    Raises:
        ReconError: it cannot be read, or it has rows that a night would refuse.
    """
    if source is None:
        return NO_LEDGER
    file: SourceFile
    if source.path is None:
        ledger = read_ledger(
            source, environment=variables, rules=settings.rules, rows_max=LEDGER_ROWS_MAX
        )
        file, rejects = ledger.source_file, ledger.rejects
    elif not source.path.is_file():
        msg = f"{source.path} is not a file; put the books there, or correct `ledger`"
        raise ReconError(msg)
    elif source.path.stat().st_size > FILE_BYTES_MAX:
        return f"{source.path}, too large to be read here"
    else:
        with ledger_file(source, rules=settings.rules) as read:
            file, rejects = read.facts.source_file, read.facts.rejects
    sentence = f"{file.name}: {file.rows_accepted} of {file.rows_read} rows read can be taken"
    if rejects:
        msg = f"{sentence}, {file.rows_rejected} would be refused; {_first(rejects)}"
        raise ReconError(msg)
    return sentence


Counts = tuple[int, int]


def _inbox_told(
    folder: Path,
    look: Callable[[Path], Counts],
    *,
    words: str,
    layouts: tuple[FileLayout, ...],
    endings: tuple[str, ...] = SUFFIXES,
) -> str:
    """How the files that lie in an inbox would be read; `words` has a place for both counts.

    Raises:
        ReconError: one would be refused whole, or without a single row.
    """
    files = inbox(_open_folder(folder, os.R_OK), layouts=layouts, endings=endings).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    read = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    wrong, counts = [], [0, 0]
    for path in read:
        try:
            counts = [sum(both) for both in zip(counts, look(path), strict=True)]
        except SourceUnreadableError as error:
            wrong.append(str(error))
    if wrong:
        raise ReconError("; ".join(wrong))
    unread = f", {len(files) - len(read)} not read here" if len(read) < len(files) else ""
    return f"{folder}, {len(files)} files{unread}{words.format(*counts) if read else ''}"


def _bank_counts(path: Path, *, bank: BankFolder, rules: Rules) -> Counts:
    """Statements and entries; a statement is whole or nothing."""
    facts = bank_facts(path, rules=rules, layout=layout_of(path.name, layouts=bank.layouts))
    return len(facts.statements), facts.source_file.rows_read


def _row_counts(
    path: Path, *, check: Callable[..., CheckedFile], account: AccountSettings, settings: Settings
) -> Counts:
    """Rows that would be taken, and refused."""
    rules_of_files = FileSettings(
        accounts=settings.accounts,
        rules=settings.rules,
        review_flags=settings.gateway.review_flags,
        interface=settings.interface,
        seal_key=settings.seal_key,
    )
    checked_file = check(path, account=account, settings=rules_of_files)
    source, rejects = checked_file.source, checked_file.rejects
    if rejects and not source.rows_accepted:
        msg = f"{path.name}: every row would be refused; {_first(rejects)}"
        raise SourceUnreadableError(msg)
    return source.rows_accepted, source.rows_rejected


def _first(rejects: tuple[Reject, ...]) -> str:
    reject = rejects[0]
    return f"the first in line {reject.line}, {reject.column}: {reject.reason}"


NEEDED_VARIABLES = ("RECON_DATABASE_URL", "RECON_GATEWAY_BASE_URL", "RECON_CONFIG_DIR")
"""What a night needs from its environment, beside a key."""

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
        opened: list[Store] = []
        database = checked("database", lambda: _database(settings, stack=stack, opened=opened))
        yield database
        if database.ok:
            environment = Environment(
                store=opened[0],
                settings=settings,
                clock=of_nights,
                wall_clock=clock,
                new_id=id_source(randomness),
                randomness=randomness,
                crash_point=crash_point_of(""),
                variables=variables,
                uptime=partial(uptime_of, of_nights),
            )
            yield from starmap(checked, _in_the_database(environment))
            for watched_account in watched(environment):
                troubles, last = watched_account.troubles, watched_account.newest
                newest = f"the newest is {last.business_date}" if last else "none has run yet"
                name = f"nights {watched_account.account}"
                yield Check(name, ok=not troubles, sentence=" ".join(troubles) or newest)
    yield from starmap(checked, _in_the_settings(settings, variables=variables))
    for key in sorted(settings.accounts):
        ask_as = partial(_gateway, settings, key=key, clock=clock, randomness=randomness)
        yield checked(f"gateway {key}", ask_as)


Look = Callable[[], str]
"""Gives a line's sentence, or raises a ReconError that is the sentence of what is wrong."""


def _in_the_database(environment: Environment) -> Iterator[tuple[str, Look]]:
    """Each line that needs the database, and what looks."""
    store, settings, variables = environment.store, environment.settings, environment.variables
    zone, config_dir = settings.rules.calendar.timezone, settings.config_dir
    yield "clock", lambda: clock_told(store, zone=zone, now=environment.clock())
    path, server = store.path, "the database has its own on its server"
    yield "disk", lambda: room_told(path.parent) if path else server
    permissions = partial(permissions_told, config_dir=config_dir, variables=variables)
    yield "permissions", lambda: permissions(store)
    yield "sending", lambda: _sending(store)
    yield "codes", lambda: codes_told(settings, store=store)
    yield "notifications", lambda: _notifications(store)
    for key, account in sorted(settings.accounts.items()):
        yield f"history {key}", partial(_history, store, account.reports, key)
        yield f"facts {key}", partial(check_facts, account_of(key), environment=environment)
        yield (
            f"closed {key}",
            partial(closed_folders_told, account_of(key), environment=environment),
        )


def _in_the_settings(
    settings: Settings, *, variables: Mapping[str, str]
) -> Iterator[tuple[str, Look]]:
    """Each line that needs the settings alone, and the folders and servers that they name."""
    yield "sign key", lambda: custody_told(settings, variables=variables)
    yield "replies", lambda: replies_told(settings)
    yield "limits", lambda: limits_told(settings)
    yield "approvers", lambda: approvers_told(settings, variables=variables)
    yield "desk", lambda: desk_told(settings, variables=variables)
    yield "cluster", lambda: _cluster(settings.cluster)
    yield "notices", lambda: told_by_settings(settings, variables=variables)
    rows = ": {} rows can be taken, {} would be refused"
    for key, account in sorted(settings.accounts.items()):
        look = partial(_row_counts, check=check_file, account=account, settings=settings)
        orders = partial(_inbox_told, account.inbox, look, words=rows, layouts=account.layouts)
        yield f"inbox {key}", orders
        if settled := account.settlement:
            look = partial(look, check=check_settlement_file)
            layouts = settled.layouts
            lines = partial(_inbox_told, settled.inbox, look, words=rows, layouts=layouts)
            yield f"settlement {key}", lines
        yield f"reports {key}", partial(_writable, account.reports)
        books = partial(ledger_told, account.ledger, settings=settings, variables=variables)
        yield f"ledger {key}", books
    whole = ": {} statements of {} entries add up"
    for name, bank in sorted(settings.banks.items()):
        of_bank = partial(_bank_counts, bank=bank, rules=settings.rules)
        read = partial(_inbox_told, bank.inbox, of_bank, words=whole, layouts=bank.layouts)
        yield f"bank {name}", partial(read, endings=ENDINGS)


def _missing(variables: Mapping[str, str]) -> Iterator[Check]:
    """One line for every variable that has no value."""
    for name in NEEDED_VARIABLES:
        if not given(variables, name):
            yield Check(name, ok=False, sentence="is not set")
    if not any(given(variables, name) for name in (*KEY_VARIABLES, SIGNER_VARIABLE)):
        with suppress(ConfigurationError):  # what is wrong with the files is told below
            accounts = load_file_settings(variables).accounts.values()
            if accounts and all(account.is_own for account in accounts):
                return
        either = " or ".join((*KEY_VARIABLES, SIGNER_VARIABLE))
        yield Check(either, ok=False, sentence="is not set")


def checked(name: str, look: Look) -> Check:
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


def _notifications(store: Store) -> str:
    with store.reading() as connection:
        counts = notification_rows.counts(connection)
    kept = counts.pop("kept")
    refused = ", ".join(f"{count} {problem}" for problem, count in counts.items())
    return f"{kept} kept, " + (f"refused: {refused}" if refused else "none refused")


def _cluster(cluster: ClusterSettings) -> str:
    at_once, is_beside = cluster.compared_at_once, cluster.compared_at_once > 1
    by = "workers" if cluster.address else f"{at_once} processes"
    compared = f"; comparisons by {by}" * is_beside
    if not cluster.address:
        return f"none: this {'machine' if is_beside else 'process'} does everything{compared}"
    with DaskWorkers(cluster) as workers:
        return f"{cluster.address}: {workers.in_words()}{compared}"


def _history(store: Store, reports: Path, key: str) -> str:
    if missing := link_missing(store, reports=reports, account=account_of(key)):
        raise ReconError(missing)
    return "the database has what was noted beside the reports"


def _open_folder(path: Path, access: int) -> Path:
    if not path.is_dir():
        msg = f"{path} does not exist or is not a folder; create it"
        raise ReconError(msg)
    if not os.access(path, access):
        msg = f"{path} is not open to this user; correct its permissions"
        raise ReconError(msg)
    return path


def _writable(path: Path) -> str:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    room = room_told(_open_folder(existing, os.W_OK))
    if existing == path:
        return room
    return f"{path} is not there yet; the first night, or call by hand, makes it ({room})"


def _gateway(settings: Settings, *, key: str, clock: Clock, randomness: Random) -> str:
    asking = ask(
        [PROBE_ORDER],
        account=account_of(key),
        settings=settings,
        clock=clock,
        randomness=randomness,
    )
    answer, reason = asyncio.run(asking).answers[PROBE_ORDER]
    if answer is KeyAnswer.FAILED:
        msg = f"{settings.gateway_base_url}: {reason}"
        raise ReconError(msg)
    return f"{settings.gateway_base_url} answers, accepts our signature and knows our address"
