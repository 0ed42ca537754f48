"""`recon verify --copy`: copy the nights and closes of a span into one folder that proves itself.

It changes nothing in the database or the archive. The folder can be checked with `sha256sum` and
`duckdb` alone, without this program. A night's folder that is not as it was sealed is copied too,
and its faults are named. The manifest is written last: without one the copy is incomplete.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from recon import __version__
from recon.archive.facts_files import whole_facts
from recon.archive.step_folder import MANIFEST, FolderFile, Sealed, look_through
from recon.archive.storage import reachable
from recon.model.durable import flush_folder
from recon.model.errors import (
    ArchiveError,
    ConfigurationError,
    FolderError,
    OutputError,
    UsageError,
)
from recon.model.terms import ControlTotal
from recon.privacy.own_files import for_group, make_folder
from recon.steps.admin.verify import night_files
from recon.steps.runtime.closed_folders import closed_folder
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    DECISIONS as DECIDED,
)
from recon.steps.runtime.night_folder import (
    PROOF,
    folder_of,
    sealed_night,
    sealed_totals,
    storages_of,
    stored_decisions,
)
from recon.store import Connection
from recon.store.database import history
from recon.store.nights import facts_rows, results, runs, sign_off_rows
from recon.store.nights.runs import PurgedNight, Run, all_purged
from recon.store.people import closed_months, decision_rows
from recon.store.people.closed_months import ClosedMonth

FORMAT = "recon evidence/1"
INDEX, README, HISTORY, HISTORY_SQL = "index.xlsx", "README.txt", "history.jsonl", "history.sql"
PEOPLE, DECISIONS = "people.json", "decisions.jsonl"
WORKBOOK = "proof/workbook.xlsx"
_SHIPPED = Path(__file__).parent / "evidence_pages"
"""The folder of texts that are copied along with every span."""
SUMS = "files.sha256"
"""The list of every file but the manifest and itself, in the format of `sha256sum -c`."""
UNREAD = "the folder was not copied whole"


class EvidenceFolder:
    """The evidence folder being written, empty at first."""

    def __init__(self, root: Path) -> None:
        """Use an empty folder, or create it.

        Raises:
            FolderError: it is not empty, or it cannot be created.
        """
        self._root = root
        self.files: dict[str, dict[str, Any]] = {}
        """Name -> name, bytes and SHA-256."""
        try:
            make_folder(root)
            names = sorted(path.name for path in root.iterdir())
        except OSError as error:
            msg = f"{root} cannot be used ({error.strerror}); nothing was written: name another"
            raise FolderError(msg) from error
        if names:
            why = "is not empty"
            if MANIFEST not in names:
                why = f"is not empty and has no {MANIFEST}: what was copied there was not finished"
            msg = f"{root} {why}; nothing was written: name an empty folder"
            raise FolderError(msg)

    def write(self, name: str, content: bytes) -> str:
        """Write one file under its path in the folder; return its SHA-256.

        Raises:
            OutputError: the folder cannot be written.
        """
        path = self._root / name
        try:
            make_folder(path.parent)
            with open(path, "xb", opener=for_group) as file:
                file.write(content)
        except OSError as error:
            msg = (
                f"{path} cannot be written ({error.strerror}); the folder has no {MANIFEST} and is "
                "not finished: remove it, then copy again"
            )
            raise OutputError(msg) from error
        sha256 = hashlib.sha256(content).hexdigest()
        self.files[name] = {"name": name, "bytes": len(content), "sha256": sha256}
        return sha256

    def finish(self, about: Mapping[str, object]) -> str:
        """Write the list of hashes, then the manifest; return the manifest's SHA-256.

        Raises:
            OutputError: the folder cannot be written.
        """
        sums = "".join(f"{self.files[name]['sha256']}  {name}\n" for name in sorted(self.files))
        self.write(SUMS, sums.encode())
        files = [self.files[name] for name in sorted(self.files)]
        document = json.dumps({**about, "files": files}, indent=2, sort_keys=True) + "\n"
        sha256 = self.write(MANIFEST, document.encode())
        flush_folder(self._root)
        return sha256


@dataclass(frozen=True, slots=True)
class CopiedFolder:
    """A folder in the copy."""

    folder: str
    """Its path in the copy, the same as in the archive."""
    manifests: Mapping[str, str]
    """Step -> SHA-256 of its manifest, as copied and as anchored in the history."""
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The days and accounts that are copied."""

    first: date
    last: date
    accounts: Sequence[tuple[str, str]]

    def has(self, run: Run) -> bool:
        """Return whether a night belongs to the span."""
        return self.first <= run.business_date <= self.last and run.account in self.accounts


@dataclass(frozen=True, slots=True)
class NightOfEvidence:
    """One run as the index shows it."""

    run: Run
    is_newest: bool
    rules_digest: str
    """Digest of the rules applied to it; `proof/rules.json` of its folder has them."""
    signed: str
    totals: Sequence[ControlTotal]
    """The totals in its folder, whatever the database has."""
    copy: CopiedFolder
    workbook: str
    """Its path in the folder; "" if it was not copied."""


@dataclass(frozen=True, slots=True)
class EvidenceIndex:
    """The contents of the evidence folder."""

    span: Span
    nights: Sequence[NightOfEvidence]
    closes: Sequence[tuple[ClosedMonth, CopiedFolder]]
    purged: Sequence[PurgedNight]
    people: Sequence[Mapping[str, Any]]
    statements: Sequence[Mapping[str, Any]]
    """People's actions by the links of the history: number, at, who, what, on what."""
    head: history.Head

    @property
    def faults(self) -> list[str]:
        """What is not as it was sealed, each as a sentence."""
        copies = [*(night.copy for night in self.nights), *(copy for _, copy in self.closes)]
        return [fault for each in copies for fault in each.faults]


@dataclass(frozen=True, slots=True)
class CopiedEvidence:
    """An evidence folder that is completely written."""

    index: EvidenceIndex
    manifest: str
    """SHA-256 of its manifest."""


def write_evidence(
    span: Span,
    *,
    out: Path,
    drawn: Callable[[EvidenceIndex], bytes],
    environment: Environment,
) -> CopiedEvidence:
    """Copy the nights and closes of a span into an empty folder; the manifest comes last.

    Args:
        span: Days and accounts.
        out: The folder.
        drawn: Renders the index workbook; `reports` provides it.
        environment: Gives access to database and archive.

    Raises:
        UsageError: the span has no finished night.
        FolderError: the folder is not empty, or cannot be used.
        OutputError: it cannot be written completely.
    """
    with environment.store.reading() as connection:
        inside = [run for run in runs.finished(connection) if span.has(run)]
        if not inside:
            msg = f"no night is finished from {span.first} to {span.last}: nothing was written"
            raise UsageError(msg)
        into = EvidenceFolder(out)
        nights = [
            _night(connection, run, into=into, environment=environment)
            for run in sorted(inside, key=lambda run: (run.business_date, run.started_at))
        ]
        environment.crash_point("copied the nights")
        closes = [*_closes(connection, span, into=into, environment=environment)]
        links = [*_links(connection, [night.run for night in nights], closes=closes)]
        head = history.head(connection)
        of_span = {night.run.run_id for night in nights}
        purged = [each for each in all_purged(connection) if each.run_id in of_span]
    statements = [*_text(links)]
    index = EvidenceIndex(
        span,
        nights,
        closes,
        purged,
        [*_people(environment, statements=statements)],
        statements,
        head,
    )
    into.write(HISTORY, _lines(links))
    into.write(DECISIONS, _lines(_decisions(nights, folder=out)))
    people = json.dumps(index.people, indent=2, sort_keys=True, default=str)
    into.write(PEOPLE, f"{people}\n".encode())
    for path in (_SHIPPED / README, _SHIPPED / HISTORY_SQL):
        into.write(path.name, path.read_bytes())
    into.write(INDEX, drawn(index))
    environment.crash_point("copied all but the manifest")
    return CopiedEvidence(index, into.finish(_about(index)))


def _night(
    connection: Connection, run: Run, *, into: EvidenceFolder, environment: Environment
) -> NightOfEvidence:
    """Copy a night, with the totals in its folder and the digest of the rules applied to it.

    The folder is verified against its manifests, and those against the history.
    """
    folder = folder_of(run)
    files = (each.file for each in night_files(connection, run, environment=environment))
    faults = [f"run {run.run_id}: {fault}" for fault in _copied(files, into=into)]
    steps: Mapping[str, Sealed] = {}
    with suppress(ArchiveError, ConfigurationError):  # already among the faults
        steps = sealed_night(connection, run, environment=environment).steps
    signatures = sign_off_rows.signatures(connection, run.run_id, desk=environment.desk)
    faults += _copied_facts(connection, run, into=into, environment=environment)
    totals, lost = None, ""
    try:
        totals = sealed_totals(connection, run, environment=environment)
        if totals is None and results.load_totals(connection, run.run_id):
            lost = "no folder has them"
    except (ArchiveError, ConfigurationError) as error:
        lost = str(error)
    if lost:
        faults.append(f"run {run.run_id}: none of its control totals is shown: {lost}")
    digest = runs.digests_of(connection, run.run_id)["rules_digest"]
    names = [f"{x.by} ({x.role}, {x.at:%Y-%m-%d %H:%M} UTC)" for x in signatures.values()]
    workbook = f"{folder}/{WORKBOOK}"
    manifests = {step.manifest.about.step: step.sha256 for step in steps.values()}
    return NightOfEvidence(
        run,
        not run.replaced,
        digest,
        ", ".join(names),
        totals or (),
        CopiedFolder(folder, manifests, tuple(faults)),
        workbook if workbook in into.files else "",
    )


def _closes(
    connection: Connection, span: Span, *, into: EvidenceFolder, environment: Environment
) -> Iterator[tuple[ClosedMonth, CopiedFolder]]:
    first, last = f"{span.first:%Y-%m}", f"{span.last:%Y-%m}"
    for closed in closed_months.all_closes(connection):
        if not first <= closed.month <= last or closed.account not in span.accounts:
            continue
        try:
            storage, sealed = closed_folder(closed, environment=environment)
            files = look_through(storage, sealed.folder, steps=[sealed])
            with reachable(storage, doing=UNREAD):
                faults = (*_copied(files, into=into),)
            yield closed, CopiedFolder(sealed.folder, {"close": sealed.sha256}, faults)
        except (ArchiveError, ConfigurationError) as error:
            yield closed, CopiedFolder(closed.folder, {}, (str(error),))


def _links(
    connection: Connection,
    of_runs: Iterable[Run],
    *,
    closes: Iterable[tuple[ClosedMonth, CopiedFolder]],
) -> Iterable[dict[str, object]]:
    """Return the links from the first to the last about these nights and closes, and the head."""
    run_ids = [run.run_id for run in of_runs]
    periods = [closed_months.period_of(each.account, each.month) for each, _ in closes]
    names = dict.fromkeys(("run", runs.ENTITY), run_ids)
    names |= {decision_rows.ENTITY: [*run_ids, *periods], closed_months.ENTITY: periods}
    numbers = [
        link.sequence
        for entity, ids in names.items()
        for link in history.links_of(connection, ids, entity=entity)
    ]
    head = history.head(connection).sequence
    first, last = min(numbers, default=head), max(numbers, default=head)
    yield from history.links_between(connection, first, last=last)
    if head > last:
        yield from history.links_between(connection, head, last=head)


def _text(links: Iterable[Mapping[str, object]]) -> Iterator[dict[str, Any]]:
    """Yield the links that name a person."""
    for link in links:
        document = json.loads(str(link["data"]))
        by = document.get("by") if isinstance(document, dict) else None
        if isinstance(by, str) and by:
            yield {
                **{name: link[name] for name in ("sequence", "at", "entity", "entity_id", "event")},
                "by": by,
                "reason": str(document.get("reason") or ""),
            }


def _people(
    environment: Environment, *, statements: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield who may decide now, by approvers.toml, and who acted in the span, by the history."""
    for short, person in sorted(environment.settings.approvers.items()):
        yield {
            "name": person.name,
            "short": short,
            "role": person.role,
            "limit": {currency: str(most) for currency, most in sorted(person.limit.items())},
            "has_code": bool(person.code_secret_env or person.code_secret_file),
            "known_by": "approvers.toml",
        }
    unknown = {"short": "", "role": "", "limit": dict[str, str](), "has_code": None}
    for name in sorted({str(statement["by"]) for statement in statements}):
        yield {"name": name, **unknown, "known_by": "history"}


def _decisions(nights: Iterable[NightOfEvidence], *, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the decisions of people that the nights show, from the copied files."""
    for night in nights:
        proof = folder / night.copy.folder / PROOF
        if night.is_newest and (proof / DECIDED).is_file():
            day = night.run.business_date.isoformat()
            for line in stored_decisions((proof / DECIDED).read_bytes()):
                yield {"run_id": night.run.run_id, "business_date": day, "what": line}


def _about(index: EvidenceIndex) -> dict[str, object]:
    return {
        "format": FORMAT,
        "product_version": __version__,
        "from": index.span.first.isoformat(),
        "to": index.span.last.isoformat(),
        "accounts": ["/".join(account) for account in index.span.accounts],
        "nights": len(index.nights),
        "closes": len(index.closes),
        "faults": index.faults,
        "purged": [
            asdict(each)
            | {"at": each.at.isoformat(), "business_date": each.business_date.isoformat()}
            for each in index.purged
        ],
        "history_head": f"{index.head.sequence}:{index.head.hash}",
    }


def _lines(documents: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(
        json.dumps(each, sort_keys=True, default=str) + "\n" for each in documents
    ).encode()


def _copied_facts(
    connection: Connection, run: Run, *, into: EvidenceFolder, environment: Environment
) -> Iterator[str]:
    """Copy the rows of the night's files, each file once; yield what is wrong with them."""
    storages = storages_of(environment)
    for facts in facts_rows.of_night(connection, run):
        if facts.rows.path in into.files:
            continue
        try:
            content = whole_facts(storages(facts.inbox), facts.rows, doing=UNREAD)
        except (ArchiveError, ConfigurationError) as error:
            yield str(error)
        else:
            into.write(facts.rows.path, content)


def _copied(files: Iterable[FolderFile], *, into: EvidenceFolder) -> Iterator[str]:
    """Copy every file that exists; yield what is wrong with them."""
    try:
        for file in files:
            if file.content is not None:
                into.write(file.name, file.content)
            if file.fault:
                yield file.fault
    except (ArchiveError, ConfigurationError) as error:
        yield str(error)
