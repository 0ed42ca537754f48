"""The folder of a run in the archive of nights, and the links of the history that bind it.

Each step's files are written first, its manifest last; then the manifest's hash becomes a link of
the history, in the transaction that ends the step. A step without its link counts for nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from recon import __version__
from recon.archive.manifest import About
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import (
    ASIDE,
    BegunStep,
    Part,
    Parts,
    Rows,
    Sealed,
    begin_step,
    end_step,
    find_sealed,
    write_step,
)
from recon.archive.storage import MAKE_WRITABLE, Storage, open_storage, reachable
from recon.config.night_archive import BESIDE, ArchiveSettings
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.database import history
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run

SEALED = "sealed"
"""The event that binds a manifest."""
INPUTS, COMPARED, RESULTS, PROOF = STEPS = ("inputs", "compared", "results", "proof")
"""Steps of a night in their order."""
SIGNED = "signed-"
"""Before a role: the step of a signature, which comes after all of the night's own."""
ANSWERS = "answers-"
"""Before a number: steps with what the gateway answered before money and after it."""
IN_PARTS = "in-parts"
"""Where the parts of a comparison lie until its results are sealed; no link binds it."""
BOOKS = "books"
"""The step before them: the whole ledger as the night read it."""
NOT_READ = (
    "could not be read; money and answers of the night are kept as they are: put the archive back, "
    "then start the night again, or, where money has moved, bring it to its end with `recon "
    "nightly --only finish --merchant M --account A --business-date D`"
)


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the history that binds a step."""

    step: str
    folder: str
    """Below the archive."""
    sha256: str
    """Of the manifest."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a manifest says of its night, beside whose it is."""

    predecessor: str
    rules_digest: str
    compared: Mapping[str, str] | None = None
    absent: Sequence[str] = ()
    last_file: int = 0


def storage_of(run: Run, *, environment: Environment) -> Storage:
    """The archive in which a run's night lies.

    Raises:
        ConfigurationError: the account is not declared, or a key of the storage is missing.
    """
    return storage_at((run.merchant_id, run.account_id), environment=environment)


def storage_at(account: tuple[str, str], *, environment: Environment) -> Storage:
    """The archive of an account's nights.

    Raises:
        ConfigurationError: the account is not declared, or a key of the storage is missing.
    """
    archive = archive_of_account(account, environment=environment)
    patience = environment.archive_patience
    return open_storage(archive, variables=environment.variables, patience=patience)


def archive_of_account(account: tuple[str, str], *, environment: Environment) -> ArchiveSettings:
    """Where an account's nights lie, with a path also where archive.toml names none.

    Raises:
        ConfigurationError: the account is not declared.
    """
    settings, database = environment.settings, environment.store.path
    if settings.archive.path:
        return settings.archive
    beside = (
        settings.account(account[0], account_id=account[1]).reports
        if database is None
        else database.parent
    )
    return settings.archive.model_copy(update={"path": str(beside / BESIDE)})


def storages_of(environment: Environment) -> StorageOf:
    """The archives of accounts, each by its merchant and account."""
    return partial(storage_at, environment=environment)


def folder_of(run: Run) -> str:
    """Where a run's steps lie, below the archive."""
    return f"nights/{run.merchant_id}/{run.account_id}/{run.business_date}/{run.run_id}"


def rows_of(tables: Iterable[tuple[str, pa.Table]]) -> Iterator[Rows]:
    """Tables by the names of their schemas as the files of a step, each made when it is asked."""
    # A map holds no table while its rows are written, as a loop would.
    return map(_sorted, tables)


def _sorted(named: tuple[str, pa.Table]) -> Rows:
    name, table = named
    return Rows.of(table, schema=SCHEMAS[name])


def write(
    run: Run,
    step: str,
    *,
    parts: Iterable[Part],
    terms: Terms,
    after: Mapping[str, str],
    environment: Environment,
) -> Sealed:
    """Write a step of a run's night; `after` has the manifests of the steps before it.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
    """
    storage = storage_of(run, environment=environment)
    about = about_of(run, step, terms=terms, after=after, environment=environment)
    with reachable(storage, doing=_not_done(run, step=step)):
        return write_step(
            storage,
            night=folder_of(run),
            about=about,
            parts=parts,
            crash_point=environment.crash_point,
        )


def begin(run: Run, step: str, *, parts: Parts, environment: Environment) -> BegunStep:
    """Write the first files of a step of a run's night; see `end`.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=_not_done(run, step=step)):
        return begin_step(
            storage,
            folder=f"{folder_of(run)}/{step}",
            parts=parts,
            crash_point=environment.crash_point,
        )


def end(
    run: Run,
    begun: BegunStep,
    *,
    first: Parts,
    rest: Sequence[Part],
    about: About,
    environment: Environment,
) -> Sealed:
    """Write the rest of a step that was begun with its first files; see `step_folder.end_step`.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=_not_done(run, step=about.step)):
        return end_step(
            storage,
            begun,
            about=about,
            first=first,
            rest=rest,
            crash_point=environment.crash_point,
        )


def about_of(
    run: Run, step: str, *, terms: Terms, after: Mapping[str, str], environment: Environment
) -> About:
    """What the manifest of a step says of its night."""
    with environment.store.reading() as connection:
        head = history.head(connection)
    return About(
        run_id=run.run_id,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        business_date=run.business_date.isoformat(),
        mode=run.mode.value,
        step=step,
        predecessor=terms.predecessor,
        rules_digest=terms.rules_digest,
        product_version=__version__,
        history_before=f"{head.sequence}:{head.hash}",
        after=dict(after),
        compared=dict(terms.compared or {}),
        absent=tuple(terms.absent),
        last_file=terms.last_file,
    )


def bind(
    connection: Connection, run: Run, *, sealed: Sequence[Sealed], environment: Environment
) -> None:
    """Make the manifests links of the history; one that is its step's newest already stays it."""
    bound = newest(links(connection, run.run_id))
    events = [
        history.Event(
            "run",
            run.run_id,
            SEALED,
            {"step": each.manifest.about.step, "folder": each.folder, "manifest": each.sha256},
        )
        for each in sealed
        if bound.get(each.manifest.about.step) != each.sha256
    ]
    if events:
        history.append(connection, events, at=environment.clock())


def links(connection: Connection, run_id: str) -> list[Link]:
    """The links that bind steps of a run, oldest first."""
    events = history.of_entity(connection, run_id)
    bound = [json.loads(str(event["data"])) for event in events if event["event"] == SEALED]
    return [Link(each["step"], each["folder"], each["manifest"]) for each in bound]


def bound_step(storage: Storage, link: Link, *, doing: str) -> Sealed:
    """The step that a link binds, set aside or not; `doing` says what was not done and kept.

    Raises:
        ArchiveError: the archive cannot be read, or does not have it.
    """
    night = link.folder.rpartition("/")[0]
    with reachable(storage, doing=doing):
        sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
    if sealed is None:
        msg = (
            f"{doing}: {link.folder} is not in the archive {storage.shown}, or is not what the "
            "history binds: put the night's folder back from a backup of the archive, or from the "
            "archive that archive.toml named before"
        )
        raise ArchiveBrokenError(msg)
    return sealed


def is_attempt(path: str) -> bool:
    """Whether a file that nobody sealed was left by an attempt; `path` is from the night's folder.

    A step that was moved aside, parts of a comparison, or a signature that was ended before it
    counted.
    """
    step = path.partition("/")[0]
    return ASIDE in step or step == IN_PARTS or step.startswith(SIGNED)


def newest(bound: Sequence[Link]) -> dict[str, str]:
    """Step -> the hash of its newest manifest."""
    return {link.step: link.sha256 for link in bound}


def answer_steps(steps: Iterable[str]) -> list[str]:
    """Those of some steps that are answers of the gateway, as they came."""
    numbers = [step.removeprefix(ANSWERS) for step in steps if step.startswith(ANSWERS)]
    return [f"{ANSWERS}{number}" for number in sorted(numbers, key=int)]


def before(step: str, *, bound: Mapping[str, str]) -> dict[str, str]:
    """The manifests of the steps that come before one of a night."""
    return {name: bound[name] for name in STEPS[: STEPS.index(step)] if name in bound}


def _not_done(run: Run, *, step: str) -> str:
    """What becomes of the night when its archive fails, and what to do."""
    if step in {BOOKS, INPUTS}:
        return f"what the night read could not be kept, so nothing was sent: {MAKE_WRITABLE}"
    if step not in STEPS:
        return "nobody's name was put under the night: make the archive writable, then sign again"
    if run.status == "finished":
        again = f"recon workbook {run.run_id}"
    elif run.mode is Mode.LIVE:
        options = f"--merchant {run.merchant_id} --account {run.account_id}"
        again = f"recon nightly --only finish {options} --business-date {run.business_date}"
    else:
        again = "the same dry run again"
    return (
        "money and answers of the night are kept in the database, only its folder could not be "
        f"written: make the archive writable, then run `{again}`"
    )
