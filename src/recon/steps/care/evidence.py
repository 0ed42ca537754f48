"""`recon evidence`: the nights and closes of a span in one folder that proves itself.

Nothing of the database or the archive is changed. Whoever has the folder needs `sha256sum` and
`duckdb`, and nothing of ours.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from recon import __version__
from recon.model.errors import ArchiveError, ConfigurationError, UsageError
from recon.model.words import ControlTotal
from recon.steps.care.close_folders import sealed_close
from recon.steps.care.evidence_copies import CopiedFolder, copied_close, copied_night
from recon.steps.care.evidence_folder import EvidenceFolder
from recon.steps.care.evidence_proof import proven_by
from recon.steps.ground.environment import Environment, account_of
from recon.steps.ground.kept_decisions import kept_decisions
from recon.steps.ground.night_folder import storage_at
from recon.store import Connection
from recon.store.database import history
from recon.store.nights import runs, sign_off_rows
from recon.store.nights.let_go_rows import LetGo, all_let_go
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth

FORMAT = "recon evidence/1"
INDEX, README, HISTORY, HISTORY_SQL = "index.xlsx", "README.txt", "history.jsonl", "history.sql"
PEOPLE, DECISIONS, RULES = "people.json", "decisions.jsonl", "rules"
WORKBOOK = "proof/workbook.xlsx"
_SHIPPED = Path(__file__).parent / "evidence_pages"
"""The texts that go with every folder."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is copied."""

    first: date
    last: date
    accounts: Sequence[tuple[str, str]]

    def has(self, run: Run) -> bool:
        """Whether a night lies in it."""
        return (
            self.first <= run.business_date <= self.last
            and (run.merchant_id, run.account_id) in self.accounts
        )

    def has_month(self, closed: ClosedMonth) -> bool:
        """Whether a day of a closed month lies in it."""
        months = f"{self.first:%Y-%m}", f"{self.last:%Y-%m}"
        return months[0] <= closed.month <= months[1] and closed.account in self.accounts


@dataclass(frozen=True, slots=True)
class NightOfEvidence:
    """One run as the index shows it."""

    run: Run
    is_newest: bool
    rules_digest: str
    rules: object
    """The document that has this digest; None where nobody has it any more."""
    signed: str
    totals: Sequence[ControlTotal]
    """As its folder has them, whatever the database says."""
    copy: CopiedFolder
    workbook: str
    """Below the folder; "" where it is not in it."""


@dataclass(frozen=True, slots=True)
class EvidenceIndex:
    """What the folder holds."""

    span: Span
    nights: Sequence[NightOfEvidence]
    closes: Sequence[tuple[ClosedMonth, CopiedFolder]]
    let_go: Sequence[LetGo]
    people: Sequence[Mapping[str, Any]]
    words: Sequence[Mapping[str, Any]]
    """What people said, by the links of the history: number, at, who, what, of what."""
    head: history.Head

    @property
    def faults(self) -> list[str]:
        """What is not as it was sealed, each as a sentence."""
        copies = [*(night.copy for night in self.nights), *(copy for _, copy in self.closes)]
        return [fault for each in copies for fault in each.faults]


@dataclass(frozen=True, slots=True)
class CopiedEvidence:
    """A folder that is written."""

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
    """Copy what a span has into an empty folder; the manifest comes last.

    Args:
        span: days and accounts.
        out: the folder.
        drawn: draws the index workbook; `reports` provides it.
        environment: where database and archive are.

    Raises:
        UsageError: the span has no finished night.
        FolderError: the folder is not empty, or cannot be used.
        OutputError: it cannot be written to its end.
    """
    with environment.store.reading() as connection:
        of_span_runs = _runs(connection, span)
        if not of_span_runs:
            msg = f"no night is finished from {span.first} to {span.last}: nothing was written"
            raise UsageError(msg)
        into = EvidenceFolder(out)
        nights = [
            _night(connection, run, is_newest=newest, into=into, environment=environment)
            for run, newest in of_span_runs
        ]
        environment.crash_point("copied the nights")
        closes = [*_closes(connection, span, into=into, environment=environment)]
        links = [*_links(connection, [night.run for night in nights], closes=closes)]
        head = history.head(connection)
        _write_rules(nights, into=into)
        of_span = {night.run.run_id for night in nights}
        gone = [each for each in all_let_go(connection) if each.run_id in of_span]
    words = [*_words(links)]
    index = EvidenceIndex(
        span, nights, closes, gone, [*_people(environment, words=words)], words, head
    )
    into.write(HISTORY, _lines(links))
    into.write(DECISIONS, _lines(_decisions(nights, folder=out)))
    into.write(PEOPLE, _json(index.people))
    for path in (_SHIPPED / README, _SHIPPED / HISTORY_SQL):
        into.write(path.name, path.read_bytes())
    into.write(INDEX, drawn(index))
    environment.crash_point("copied all but the manifest")
    return CopiedEvidence(index, into.finish(_about(index)))


def _runs(connection: Connection, span: Span) -> list[tuple[Run, bool]]:
    """The finished runs of a span, oldest night first, and whether each is its night's newest."""
    finished = runs.finished(connection)
    every = [(runs.get(connection, each.run_id), not each.replaced) for each in finished]
    inside = [(run, newest) for run, newest in every if span.has(run)]
    return sorted(inside, key=lambda each: (each[0].business_date, each[0].started_at))


def _night(
    connection: Connection,
    run: Run,
    *,
    is_newest: bool,
    into: EvidenceFolder,
    environment: Environment,
) -> NightOfEvidence:
    copy = copied_night(connection, run, into=into, environment=environment)
    proven = proven_by(connection, run, environment=environment)
    copy = replace(copy, faults=(*copy.faults, *proven.faults))
    workbook = f"{copy.folder}/{WORKBOOK}"
    signatures = sign_off_rows.signatures(connection, run.run_id).values()
    return NightOfEvidence(
        run,
        is_newest,
        proven.rules_digest,
        proven.rules,
        ", ".join(f"{each.by} ({each.role}, {each.at:%Y-%m-%d %H:%M} UTC)" for each in signatures),
        proven.totals,
        copy,
        workbook if into.has(workbook) else "",
    )


def _closes(
    connection: Connection, span: Span, *, into: EvidenceFolder, environment: Environment
) -> Iterator[tuple[ClosedMonth, CopiedFolder]]:
    for closed in filter(span.has_month, closed_months.all_closes(connection)):
        try:
            sealed = sealed_close(closed, environment=environment)
            storage = storage_at(closed.account, environment=environment)
            yield closed, copied_close(sealed, storage=storage, into=into)
        except (ArchiveError, ConfigurationError) as error:
            yield closed, CopiedFolder(closed.folder, {}, (str(error),))


def _links(
    connection: Connection,
    of_runs: Iterable[Run],
    *,
    closes: Iterable[tuple[ClosedMonth, CopiedFolder]],
) -> Iterable[dict[str, object]]:
    """The links from the first to the last that speak of these nights and closes, and the head."""
    names = [run.run_id for run in of_runs]
    names += [closed_months.period_of(each.account, each.month) for each, _ in closes]
    numbers = [
        int(str(event["sequence"]))
        for name in names
        for event in history.of_entity(connection, name)
    ]
    head = history.head(connection).sequence
    first, last = min(numbers, default=head), max(numbers, default=head)
    yield from history.links_between(connection, first, last=last)
    if head > last:
        yield from history.links_between(connection, head, last=head)


def _words(links: Iterable[Mapping[str, object]]) -> Iterator[dict[str, Any]]:
    """The links in which a person is named."""
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
    environment: Environment, *, words: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Who may speak now, by approvers.toml, and who spoke in the span, by the history."""
    for short, person in sorted(environment.settings.approvers.items()):
        yield {
            "name": person.name,
            "short": short,
            "role": person.role,
            "limit": {currency: str(most) for currency, most in sorted(person.limit.items())},
            "has_code": bool(person.code_secret_env or person.code_secret_file),
            "known_by": "approvers.toml",
        }
    for name in sorted({str(word["by"]) for word in words}):
        yield {
            "name": name,
            "short": "",
            "role": "",
            "limit": {},
            "has_code": None,
            "known_by": "history",
        }


def _decisions(nights: Iterable[NightOfEvidence], *, folder: Path) -> Iterator[dict[str, Any]]:
    """What people decided that the nights show, from the files that were copied."""
    for night in nights:
        if night.is_newest:
            day = night.run.business_date.isoformat()
            for line in _decided(folder / night.copy.folder / "proof"):
                yield {"run_id": night.run.run_id, "business_date": day, "what": line}


def _decided(proof: Path) -> list[str]:
    """The decisions of one night, one a line; none of one that was not copied."""
    try:
        return kept_decisions(lambda name: (proof / name).read_bytes())
    except FileNotFoundError:
        return []


def _write_rules(nights: Iterable[NightOfEvidence], *, into: EvidenceFolder) -> None:
    """The rules that judged, one file a digest, and since when each did."""
    since: dict[str, str] = {}
    written: set[str] = set()
    for night in nights:
        since.setdefault(night.rules_digest, night.run.business_date.isoformat())
        if night.rules is not None and night.rules_digest not in written:
            into.write(f"{RULES}/{night.rules_digest}.json", _json(night.rules))
            written.add(night.rules_digest)
    into.write(f"{RULES}/changes.json", _json([*since.items()]))


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
        "let_go": [
            asdict(each)
            | {"at": each.at.isoformat(), "business_date": each.business_date.isoformat()}
            for each in index.let_go
        ],
        "history_head": f"{index.head.sequence}:{index.head.hash}",
    }


def accounts_of(environment: Environment, *, name: str) -> list[tuple[str, str]]:
    """The account of a name `merchant/account`, or every one that is declared.

    Raises:
        UsageError: it is not declared.
    """
    every = sorted(environment.settings.accounts)
    if name and name not in every:
        msg = f"{name} is not a declared account; declared: {', '.join(every) or 'none'}"
        raise UsageError(msg)
    return [account_of(each) for each in every if name in {"", each}]


def _lines(documents: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(
        json.dumps(each, sort_keys=True, default=str) + "\n" for each in documents
    ).encode()


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True, default=str) + "\n").encode()
