"""`recon verify`: check that what is stored is intact, and that people endorsed it.

It checks the history, the tables anchored in it, the signatures of the approvals service, the
folders of nights and closes, totals, and the workbooks of finished runs; for one night every byte.
Verdicts are not evaluated: a night with breaks verifies as well as a clean one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recon.archive.step_folder import (
    MANIFEST,
    FolderFile,
    Sealed,
    find_sealed,
    look_through,
    sealed_step,
)
from recon.archive.storage import Storage, reachable
from recon.desk.endorsement import Kind
from recon.files.formats.named_bytes import sha256_of
from recon.model.errors import (
    ArchiveBrokenError,
    ArchiveError,
    ConfigurationError,
    OutputError,
    SourceMissingError,
)
from recon.model.figures import NightFigures
from recon.model.terms import InstructionState
from recon.steps.approvals.sign_off import later_run
from recon.steps.compare.night_totals import proven_again
from recon.steps.compare.rebuild import run_named
from recon.steps.files.file_decisions import unendorsed_files
from recon.steps.money.gate import given_up, link_missing, unendorsed_restores
from recon.steps.night.report import figures_of
from recon.steps.runtime.closed_folders import FOLDER, close_problems
from recon.steps.runtime.environment import Environment, account_of
from recon.steps.runtime.identity import lost_endorsement
from recon.steps.runtime.night_folder import (
    INPUTS,
    StoredResult,
    changed_summary,
    changed_totals,
    folder_of,
    is_attempt,
    is_stored,
    links,
    sealed_night,
    storage_at,
    storage_of,
    storages_of,
)
from recon.store import Connection
from recon.store.database import history
from recon.store.database.record import ATTESTED_TABLES, PROBLEMS_MAX, RUN, changed, changed_in
from recon.store.money import case_rows
from recon.store.money.endorsement_rows import Endorsed, start_problem
from recon.store.nights import facts_rows, order_rows, runs, sign_off_rows
from recon.store.nights.facts_rows import facts_problems
from recon.store.nights.runs import Run, all_purged, purged_night_of
from recon.store.people import closed_months, resolution_rows
from recon.store.people.decision_rows import money_stated, not_agreed


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and the problems found."""

    checked_runs: int
    history_head: str
    problems: tuple[str, ...]
    unfinished: tuple[str, ...]
    """Runs that stopped or are still running: listed, not failures."""
    compared: str = ""
    """What the one workbook was compared with, and the path of the sealed file."""
    replaced: str = ""
    """That the one workbook is of a run that was replaced: reported, not a failure."""
    purged: tuple[str, ...] = ()
    """Nights whose folder was purged under retention: reported, not failures."""
    answered: tuple[str, ...] = ()
    """Workbooks changed only by people's answers: reported, not failures."""


CELLS_DISPLAYED_MAX = 20
"""How many cells of one workbook are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The functions that inspect workbooks; `reports` provides them."""

    companions: Callable[[Path], Iterable[str]]
    """Problems with the companion files that a workbook names."""
    run_of: Callable[[Path], str]
    """The run that a workbook names as its own, or ""."""
    differences: Callable[[NightFigures | Path, Path], Iterable[str]]
    """Cells that differ from the night's own workbook, or from its figures."""


def verify(
    environment: Environment, *, reading: Reading, workbook: Path | None = None
) -> Verification:
    """Check the whole store, or one workbook against it.

    Raises:
        SourceMissingError: the named workbook does not exist.
    """
    if workbook is not None and not workbook.is_file():
        msg = f"the workbook {workbook} does not exist"
        raise SourceMissingError(msg)
    cut = []
    for name, account in environment.settings.accounts.items():
        if missing := link_missing(
            environment.store, reports=account.reports, account=account_of(name)
        ):
            cut.append(f"account {name}: links were cut off, or a backup was restored: {missing}")
    with environment.store.reading() as connection:
        head, broken = history.verify(connection)
        finished = runs.finished(connection)
        problems = [
            *filter(None, (broken, *cut)),
            *changed_in(connection, ATTESTED_TABLES),
            *order_rows.all_changed_actions(connection),
            *facts_rows.changed(connection),
            *runs.changed_rules(connection),
        ]
        problems += unendorsed(connection, environment=environment)
        problems += history.found(close_problems(connection, environment=environment))
        answered: list[str] = []
        if workbook is None:
            unreached = ""
            for run in finished:
                try:
                    problems += folder_problems(
                        connection, run, environment=environment, is_deep=False
                    )
                    problems += changed_totals(connection, run, environment=environment)
                except ArchiveBrokenError as error:
                    problems.append(f"run {run.run_id}: {error}")
                except (ArchiveError, ConfigurationError) as error:
                    unreached = str(error)
                wrong, notes = _delivered(run, reading=reading, environment=environment)
                problems += wrong
                answered += notes
            if unreached:
                problems.append(unreached)
            else:  # folders that only a later state of the database can have known
                problems += history.found(forgotten_folders(connection, environment=environment))
            storages = storages_of(environment)
            problems += facts_problems(facts_rows.every(connection), storages=storages)
        purged = () if workbook else tuple(map(str, all_purged(connection)))
        unfinished = tuple(
            f"{run.run_id} ({run.business_date}, {run.status} after {run.step or 'its start'})"
            for run in runs.unfinished(connection)
        )
    head_shown = f"{head.sequence}:{head.hash}"
    whole = Verification(
        *(len(finished), head_shown, tuple(problems), unfinished),
        purged=purged,
        answered=tuple(answered),
    )
    if workbook is None:
        return whole
    compared, wrong = _one_workbook(environment, finished, workbook=workbook, reading=reading)
    run_id, replaced = reading.run_of(workbook), ""
    with environment.store.reading() as connection:
        if later := later_run(connection, run_id):
            replaced = (
                f"{workbook} is of run {run_id}, which run {later} replaced: signatures under it "
                "count for nothing, the newest workbook is the one to sign"
            )
    return replace(whole, problems=(*problems, *wrong), compared=compared, replaced=replaced)


def verify_night(environment: Environment, *, name: str) -> Verification:
    """Check one night, given as a run or a business date: its folder, its totals and the chain.

    Raises:
        UsageError: there is no such finished night.
        ArchiveError: the archive cannot be reached.
    """
    with environment.store.reading() as connection:
        run = run_named(connection, name)
        problems = folder_problems(connection, run, environment=environment)
        going = purged_night_of(connection, run.run_id)
        if not problems:
            problems += changed_totals(connection, run, environment=environment)
        if not problems and going is None:
            problems += [
                f"run {run.run_id}: {total.id} {total.name}: night {total.left}, SQL {total.right}"
                for total in proven_again(run, environment=environment)
                if not total.passed
            ]
        head, broken = history.verify(connection)
        problems += changed(connection, RUN)
        problems += changed_summary(connection, run.run_id)
        problems += facts_rows.changed(connection)
        problems += runs.changed_rules(connection)
        files, storages = facts_rows.of_night(connection, run), storages_of(environment)
        problems += facts_problems(files, storages=storages)
    problems += [broken] if broken else []
    purged = () if going is None else (str(going),)
    return Verification(1, f"{head.sequence}:{head.hash}", tuple(problems), (), purged=purged)


def _delivered(
    run: Run, *, reading: Reading, environment: Environment
) -> tuple[list[str], list[str]]:
    """Return problems with the workbook that a run wrote, and notes if only answers were added."""
    if run.replaced or not run.workbook:
        return [], []
    path = _written(run, environment=environment)
    if not path.is_file():
        missing = f"run {run.run_id}: its workbook {path} is gone (`recon workbook {run.run_id}`)"
        return [missing], []
    problems: list[str] = []
    try:
        problems += (f"run {run.run_id}: {problem}" for problem in reading.companions(path))
        if sha256_of(path) == run.workbook_sha256:
            return problems, []
        night = _night_of(environment, run) if reading.run_of(path) == run.run_id else None
        cells = [] if night is None else [*reading.differences(night, path)]
    except OutputError:  # not a workbook any more: the others are still checked
        night, cells = None, []
    if night is None or cells:
        wrong = f"run {run.run_id}: {path} is not the workbook that was written that night"
        return [wrong, *cells[:CELLS_DISPLAYED_MAX], *problems], []
    note = (
        f"run {run.run_id}: {path} was saved with answers, and says the same otherwise: bring "
        f"them in (`recon import-resolutions {path} --as NAME`)"
    )
    return problems, [note]


def _one_workbook(
    environment: Environment, finished: list[Run], *, workbook: Path, reading: Reading
) -> tuple[str, list[str]]:
    """Return what one workbook was compared with, by its bytes or its cells, and the problems."""
    digest = sha256_of(workbook)
    for run in finished:
        if run.workbook_sha256 == digest:
            sealed = f"{workbook} is the file that run {run.run_id} wrote (SHA-256 {digest})"
            return sealed, [*reading.companions(workbook)]
    run_id = reading.run_of(workbook)
    of_run = next((run for run in finished if run.run_id == run_id), None)
    if of_run is None:
        return "", [
            f"{workbook} is not a workbook that any finished run wrote (or it was edited since)"
        ]
    night = _night_of(environment, of_run)
    if night is None:
        return "", [f"run {run_id}, of which {workbook} says it is, has no result to compare with"]
    again = f"`recon workbook {run_id}` writes it again"
    measure = f"what the night's folder has ({of_run.workbook} is gone or was changed: {again})"
    if isinstance(night, Path):
        measure = f"the sealed file {night}, which is the one to keep and sign"
    compared = (
        f"{workbook} is not the file that run {run_id} wrote, so its cells were compared, but for "
        f"answers and names, with {measure}"
    )
    cells = [*reading.differences(night, workbook)]
    if not cells:
        return f"{compared}: they say the same", [*reading.companions(workbook)]
    differ = f"{workbook} does not say what run {run_id} wrote: {len(cells):,} differences"
    more = len(cells) - CELLS_DISPLAYED_MAX
    others = [f"… and {more} more"] if more > 0 else []
    return compared, [differ, *cells[:CELLS_DISPLAYED_MAX], *others, *reading.companions(workbook)]


def _night_of(environment: Environment, run: Run) -> NightFigures | Path | None:
    """Return the file that the run wrote if it is unchanged, otherwise its figures as of now."""
    written = _written(run, environment=environment)
    if run.workbook and written.is_file() and sha256_of(written) == run.workbook_sha256:
        return written
    with environment.store.reading() as connection:
        result = StoredResult(connection, run.run_id, environment).whole()
    return None if result is None else figures_of(run, result=result, environment=environment)


def _written(run: Run, *, environment: Environment) -> Path:
    """Return the path of a run's workbook: as written, or in a reports folder moved since."""
    path = Path(run.workbook)
    folders = (account.reports for account in environment.settings.accounts.values())
    return next((p for p in (path, *(each / path.name for each in folders)) if p.is_file()), path)


SENT = tuple(
    state.value
    for state in InstructionState
    if state not in {InstructionState.PLANNED, InstructionState.WITHDRAWN}
)


def unendorsed(connection: Connection, *, environment: Environment) -> list[str]:
    """Return what the tables record without endorsement, up to PROBLEMS_MAX of each kind."""
    desk = environment.desk
    endorsed = Endorsed(desk)
    decided = (
        (Kind.DECISION, each, {"verdict": verdict}, f"instruction {each} counts as {of_it}")
        for each, verdict in case_rows.decided_by_people(connection)
        for of_it in [f"decided ({verdict})"]
    )
    written_off = (
        (Kind.WRITE_OFF, each, money_stated(money), f"break {each} counts as written off")
        for each, money in resolution_rows.all_agreed_write_offs(connection)
    )
    kinds: tuple[Iterable[str], ...] = (
        filter(None, [lost_endorsement(environment.desk, store=environment.store)]),
        endorsed.broken(connection),
        endorsed.row_problems(connection, states=SENT),
        filter(None, [start_problem(connection, desk)]),
        unendorsed_restores(connection, desk),
        unendorsed_files(connection, desk),
        (
            f"{claim}, but {why}"
            for kind, subject, says, claim in (*decided, *written_off)
            if (why := not_agreed(connection, kind, subject=subject, says=says, desk=desk))
        ),
    )
    return [problem for kind in kinds for problem in islice(history.found(kind), PROBLEMS_MAX)]


UNREAD = "nothing of it could be looked at"


class NightFile(NamedTuple):
    """A file of a night's folder."""

    file: FolderFile
    stays: bool
    """Whether it stays when its night is purged."""


def night_files(
    connection: Connection, run: Run, *, environment: Environment, is_deep: bool = True
) -> Iterator[NightFile]:
    """Yield every file of a run's folder, verified against its manifests, and those by the history.

    The removed files of a purged folder are not listed. Without `is_deep` only missing manifests
    are yielded.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage, folder = storage_of(run, environment=environment), folder_of(run)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id, desk=environment.desk))
    steps: dict[str, Sealed] = {}
    is_broken = False
    with reachable(storage, doing=UNREAD):
        for link in {link.step: link for link in links(connection, run.run_id)}.values():
            name = f"{link.folder}/{MANIFEST}"
            try:
                night = link.folder.rpartition("/")[0]
                sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
            except ArchiveBrokenError as error:
                # It exists in a version that cannot be read here; a deep check reports that.
                is_broken = True
                yield from [NightFile(FolderFile(name, None, str(error)), stays=True)] * is_deep
                continue
            if sealed is None:
                fault = (
                    f"{name} of the archive {storage.shown} is gone, or is not the one whose hash "
                    "the history keeps: the folder was moved, changed, swapped or restored from an "
                    "older copy; put it back from a backup of the archive"
                )
                yield NightFile(FolderFile(name, None, fault), stays=True)
            else:
                steps[sealed.folder] = sealed
        if not is_deep:
            return
        is_purged = purged_night_of(connection, run.run_id) is not None
        if not is_broken:  # inputs of an earlier start are anchored by another step
            own = sealed_night(connection, run, environment=environment).steps.values()
            steps |= {step.folder: step for step in own}
        for file in look_through(storage, folder, steps=steps.values(), is_left=is_attempt):
            stays = is_stored(file.name.removeprefix(f"{folder}/"), is_signed=is_signed)
            if file.content is not None or stays or not is_purged:
                yield NightFile(file, stays)


def folder_problems(
    connection: Connection, run: Run, *, environment: Environment, is_deep: bool = True
) -> list[str]:
    """Return a sentence for each part of a run's folder that is not as it was sealed.

    Of a purged folder everything that purging keeps is checked; see `night_files`.
    """
    is_purged = purged_night_of(connection, run.run_id) is not None
    return [
        f"run {run.run_id}: {file.fault}"
        for file, stays in night_files(connection, run, environment=environment, is_deep=is_deep)
        if file.fault and (stays or not is_purged)
    ]


def forgotten_folders(connection: Connection, *, environment: Environment) -> Iterator[str]:
    """Yield folders of runs and closes that only a later state of the database can have known.

    What nights on another copy left before this database was put back does not count, nor what
    began on links that two people accepted as lost.
    """
    newest = history.head(connection).sequence
    closed_folders = {closed.folder for closed in closed_months.all_closes(connection)}
    for name in sorted(environment.settings.accounts):
        account = account_of(name)
        known = max(newest, given_up(connection, account=name))
        try:
            storage = storage_at(account, environment=environment)
            with reachable(storage, doing=UNREAD):
                nights = {
                    folder: f"{folder}/{INPUTS}"
                    for folder in _two_below(storage, "/".join(("nights", *account)))
                    if not runs.is_known(connection, folder.rpartition("/")[2])
                }
                months = _two_below(storage, "/".join((FOLDER, *account)))
                closes = {folder: folder for folder in months if folder not in closed_folders}
                for folder, step in {**nights, **closes}.items():
                    if _began_after(storage, step) > known:
                        yield (
                            f"the archive {storage.shown} has {folder}, which was written after "
                            f"link {newest} of the history, the newest that this database has: it "
                            "is older than the archive; put the newest database back"
                        )
        except (ArchiveError, ConfigurationError) as error:
            yield str(error)


def _two_below(storage: Storage, folder: str) -> list[str]:
    return [each for middle in storage.folders(folder) for each in storage.folders(middle)]


def _began_after(storage: Storage, folder: str) -> int:
    """Return the number of the newest link when a step was written; 0 if it was never sealed."""
    try:
        sealed = sealed_step(storage, folder=folder)
    except ArchiveBrokenError:
        return 0
    return int(sealed.manifest.about.history_before.split(":")[0]) if sealed else 0
