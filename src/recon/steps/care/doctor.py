"""`recon doctor`: is everything a night needs there? One line per check, each with what to do."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from recon.config.approvers import Approver
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
from recon.steps.night.lookout import watched
from recon.steps.night.notices import told_by_settings
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.money import sending_rows
from recon.store.nights import notification_rows
from recon.store.nights.answer_parts import SeenCode, codes_seen
from recon.workers.dask_workers import DaskWorkers, connected


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
    if given(variables, SOCKET):
        return f"declared: {', '.join(sorted(people))}; their codes are checked at the desk"
    lost = [
        short
        for short, approver in people.items()
        if _has_lost_secret(approver, variables=variables)
    ]
    if lost:
        msg = f"the one-time-code secret of {', '.join(sorted(lost))} is named but not there"
        raise ConfigurationError(msg)
    bare = sorted(
        short
        for short, approver in people.items()
        if not approver.code_secret_env and approver.code_secret_file is None
    )
    sentence = f"declared: {', '.join(sorted(people))}"
    return (
        f"{sentence}; without a code, so not authenticated: {', '.join(bare)}" if bare else sentence
    )


def _has_lost_secret(approver: Approver, *, variables: Mapping[str, str]) -> bool:
    if approver.code_secret_file is not None:
        try:
            return not key_of_file(approver.code_secret_file)
        except ReconError:
            return True
    return (
        bool(approver.code_secret_env) and not variables.get(approver.code_secret_env, "").strip()
    )


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
        return "every code seen so far is mapped"
    named = ", ".join(sorted(unmapped))
    return f"not mapped: {named}; `recon gateway doctor` prints the lines for rules.toml"


def notifications_told(store: Store) -> str:
    """How many messages of the gateway were kept and refused.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as connection:
        counts = notification_rows.counts(connection)
    kept = counts.pop("kept")
    refused = ", ".join(f"{count} {problem}" for problem, count in counts.items())
    return f"{kept} kept, " + (f"refused: {refused}" if refused else "none refused")


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
    if given(variables, SOCKET):
        return _apart(settings, variables=variables, name=held.name)
    if held.private is not None:
        return (
            f"key {held.name}, held by this very process: whoever has this login can speak for "
            "everybody; `recon desk serve` under a login of its own is the barrier"
        )
    return f"key {held.name}; words are checked here and heard elsewhere ({SOCKET} is not set)"


def _apart(settings: Settings, *, variables: Mapping[str, str], name: str) -> str:
    path = Path(variables[SOCKET])
    if not is_heard(path):
        msg = f"no desk listens at {path}: start `recon desk serve`; until then nobody is heard"
        raise ConfigurationError(msg)
    people = settings.approvers.items()
    secrets = sorted(
        short for short, person in people if given(variables, person.code_secret_env or "-")
    )
    open_to_us = [PRIVATE] if given(variables, PRIVATE) else []
    open_to_us += [f"the code secret of {short}" for short in secrets]
    if open_to_us:
        msg = (
            f"this process has {', '.join(open_to_us)}, which the desk alone should have: take it "
            "out of these variables"
        )
        raise ConfigurationError(msg)
    return f"key {name}; people are heard at {path}"


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
        raise ConfigurationError(_refusal(named))


def custody_told(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Which set-up this is, in a sentence.

    Raises:
        ConfigurationError: nobody signs, or nights of Prefect would be refused.
    """
    if settings.sign_keys.signer is not None:
        return _signer_told(settings.sign_keys.signer, settings=settings)
    if named := _in_reach(settings, variables=variables):
        if not settings.gateway.plain_key_under_prefect and variables.get(SERVER_OF_PREFECT):
            raise ConfigurationError(_refusal(named))
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


def _signer_told(signer: Path, *, settings: Settings) -> str:
    try:
        health = SignerSocket(signer).health()
    except UnsignedError as error:
        raise ConfigurationError(str(error)) from error
    missing = sorted(set(settings.accounts) - set(health.get("accounts", ())))
    if missing:
        msg = f"the signer at {signer} signs nothing for {', '.join(missing)}"
        raise ConfigurationError(msg)
    if health.get("uid") == os.geteuid():
        return (
            f"with the signer at {signer}, of this same user: in no environment, but a program of "
            "this user could read the signer's files; give it a user of its own"
        )
    return f"with the signer at {signer}, of another user: nothing here reads it"


def _in_reach(settings: Settings, *, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Variables with a key of real money; none where the gateway is on this machine."""
    if is_on_this_machine(settings):
        return ()
    return keys_in_environment(variables, accounts=settings.accounts)


def _refusal(named: tuple[str, ...]) -> str:
    return (
        f"{', '.join(named)} holds the sign key in the environment of what Prefect starts, where "
        "everybody who may start a run could read it; nothing was sent: let `recon signer` hold "
        f"it and name its socket in {SIGNER_VARIABLE} (docs/SECURITY.md), or put it into a file "
        "(RECON_SIGN_KEY_FILE), or accept it with plain_key_under_prefect = true in gateway.toml"
    )


LEDGER_ROWS_MAX = 10
"""Rows of a ledger's query; a night reads them all."""
FILES_READ_MAX = 20
"""Files of an inbox that are read; the newest ones."""
FILE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files are not read: people wait for the doctor."""
NO_LEDGER = "none: the verdict is never better than INCOMPLETE (merchants.toml, ledger)"

CheckFile = Callable[..., CheckedFile]


def ledger_told(
    source: LedgerSource | None, *, settings: Settings, variables: Mapping[str, str]
) -> str:
    """How many of the ledger's rows were read and taken.

    Raises:
        ReconError: it cannot be read, or it has rows that a night would refuse.
    """
    if source is None:
        return NO_LEDGER
    if source.path is not None:
        if not source.path.is_file():
            msg = f"{source.path} is not a file; put the books there, or correct `ledger`"
            raise ReconError(msg)
        if source.path.stat().st_size > FILE_BYTES_MAX:
            return f"{source.path}, too large to be read here"
        with ledger_file(source, rules=settings.rules) as read:
            return _ledger_in_words(read.facts.source_file, rejects=read.facts.rejects)
    ledger = read_ledger(
        source, environment=variables, rules=settings.rules, rows_max=LEDGER_ROWS_MAX
    )
    return _ledger_in_words(ledger.source_file, rejects=ledger.rejects)


def _ledger_in_words(file: SourceFile, *, rejects: tuple[Reject, ...]) -> str:
    sentence = f"{file.name}: {file.rows_accepted} of {file.rows_read} rows read can be taken"
    if not rejects:
        return sentence
    msg = f"{sentence}, {file.rows_rejected} would be refused; {_first(rejects)}"
    raise ReconError(msg)


def inbox_told(folder: Path, *, account: AccountSettings, settings: Settings) -> str:
    """How the order files that lie in the inbox would be read.

    Raises:
        ReconError: one would be refused whole, or without a single row.
    """
    return _files_told(
        folder, account=account, settings=settings, check=check_file, layouts=account.layouts
    )


def settlement_told(folder: Path, *, account: AccountSettings, settings: Settings) -> str:
    """How the settlement files that lie in their inbox would be read.

    Raises:
        ReconError: one would be refused whole, or without a single row.
    """
    layouts = account.settlement.layouts if account.settlement else ()
    return _files_told(
        folder, account=account, settings=settings, check=check_settlement_file, layouts=layouts
    )


def bank_told(folder: Path, *, bank: BankFolder, rules: Rules) -> str:
    """How the statements that lie in the inbox of a bank would be read.

    Raises:
        ReconError: one would be refused; a statement is whole or nothing.
    """
    files = inbox(folder, layouts=bank.layouts, endings=ENDINGS).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    read = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    wrong, statements, entries = [], 0, 0
    for path in read:
        layout = layout_of(path.name, layouts=bank.layouts)
        try:
            facts = bank_facts(path, rules=rules, layout=layout)
        except SourceUnreadableError as error:
            wrong.append(str(error))
            continue
        statements += len(facts.statements)
        entries += facts.source_file.rows_read
    if wrong:
        raise ReconError("; ".join(wrong))
    unread = f", {len(files) - len(read)} not read here" if len(read) < len(files) else ""
    rows = f": {statements} statements of {entries} entries add up" if read else ""
    return f"{folder}, {len(files)} files{unread}{rows}"


def _files_told(
    folder: Path,
    *,
    account: AccountSettings,
    settings: Settings,
    check: CheckFile,
    layouts: tuple[FileLayout, ...],
) -> str:
    files = inbox(folder, layouts=layouts).files
    newest = sorted(files, key=lambda path: path.lstat().st_mtime_ns)[-FILES_READ_MAX:]
    read = [path for path in newest if path.lstat().st_size <= FILE_BYTES_MAX]
    rules_of_files = FileSettings(
        accounts=settings.accounts,
        rules=settings.rules,
        review_flags=settings.gateway.review_flags,
        interface=settings.interface,
        seal_key=settings.seal_key,
    )
    wrong, accepted, rejected = [], 0, 0
    for path in read:
        try:
            checked = check(path, account=account, settings=rules_of_files)
        except SourceUnreadableError as error:
            wrong.append(str(error))
            continue
        accepted += checked.source.rows_accepted
        rejected += checked.source.rows_rejected
        if checked.rejects and not checked.source.rows_accepted:
            wrong.append(f"{path.name}: every row would be refused; {_first(checked.rejects)}")
    if wrong:
        raise ReconError("; ".join(wrong))
    unread = f", {len(files) - len(read)} not read here" if len(read) < len(files) else ""
    rows = f": {accepted} rows can be taken, {rejected} would be refused" if read else ""
    return f"{folder}, {len(files)} files{unread}{rows}"


def _first(rejects: tuple[Reject, ...]) -> str:
    reject = rejects[0]
    return f"the first in line {reject.line}, {reject.column}: {reject.reason}"


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
    yield checked("replies", lambda: replies_told(settings))
    yield checked("limits", lambda: limits_told(settings))
    yield checked("approvers", lambda: approvers_told(settings, variables=variables))
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
        "clock": lambda: clock_told(store, zone=zone, now=clock()),
        "disk": lambda: _disk(store),
        "permissions": lambda: permissions_told(store, config_dir=config_dir, variables=variables),
        "sending": lambda: _sending(store),
        "codes": lambda: codes_told(settings, store=store),
        "notifications": lambda: notifications_told(store),
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
    room = room_told(existing)
    if existing == path:
        return room
    return f"{path} is not there yet; the first night, or call by hand, makes it ({room})"


def _disk(store: Store) -> str:
    path = store.path
    return room_told(path.parent) if path else "the database has its own on its server"


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
