"""Reasons for INCOMPLETE: the sources or groups of answers that a night lacks."""

import hashlib
from collections import Counter
from collections.abc import Iterator

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.model.terms import KeyAnswer, SetState, SourceFile, SourceKind, Verdict
from recon.proof.verdict import allowance

WHOLE_FILE = "(whole file)"
"""Column of a reject that represents something that could not be read at all."""
ABSENT = "00000000"
"""Prefix of the hash of something that was never read."""


def absent_sha256(*identity: str) -> str:
    """A substitute hash for something that was never read."""
    return ABSENT + hashlib.sha256("\x1f".join(identity).encode()).hexdigest()[len(ABSENT) :]


def unread(
    kind: SourceKind, name: str, *, sha256: str, size_bytes: int = 0, rejected: int = 1
) -> SourceFile:
    """A source of which nothing was read, with one rejected row."""
    return SourceFile(
        kind=kind,
        name=name,
        sha256=sha256,
        size_bytes=size_bytes,
        rows_read=rejected,
        rows_accepted=0,
        rows_rejected=rejected,
        rows_skipped=0,
        rows_unassigned=rejected,
    )


NO_ORDER_FILE = "no order file has arrived for this business date"
NO_ANSWER = "the gateway gave no usable answer for any order"
NO_LEDGER = "no ledger was read: the account declares none (merchants.toml, `ledger`)"
_FILE_OF = {
    SourceKind.ORDERS: "order file",
    SourceKind.SETTLEMENT: "settlement file",
    SourceKind.BANK: "statement of",
}
GROUPS_DISPLAYED_MAX = 3


def missing_sources(sources: Sources) -> tuple[str, ...]:
    """Sources that should have been there, a sentence for each."""
    missing = [
        f"{_FILE_OF.get(item.kind, item.kind)} {item.source} could not be read: {item.reason}"
        for item in sources.rejects
        if item.column == WHOLE_FILE
    ]
    if not any(file.kind is SourceKind.ORDERS for file in sources.files):
        missing.append(NO_ORDER_FILE)
    if {*sources.gateway["answer"].unique(), *sources.answers_before} == {KeyAnswer.FAILED.value}:
        missing.append(NO_ANSWER)
    return tuple(missing)


def why_incomplete(result: Reconciliation, *, sources: Sources, rules: Rules) -> tuple[str, ...]:
    """What an INCOMPLETE result lacks, the most severe first; empty for any other verdict."""
    if result.verdict is not Verdict.INCOMPLETE:
        return ()
    return (
        *missing_sources(sources),
        *result.bank_lacks,
        *_empty_sides(sources),
        *_uncertain(result, sources, rules),
    )


def _empty_sides(sources: Sources) -> Iterator[str]:
    found = [file for file in sources.files if file.kind is SourceKind.LEDGER]
    if sources.ledger is None and not found:
        yield NO_LEDGER
    for file in found:
        if sources.ledger is None and file.sha256[: len(ABSENT)] != ABSENT:
            yield f"every row of {file.name} was refused ({file.rows_rejected})"
    if any(file.kind is SourceKind.ORDERS for file in sources.files):
        if sources.orders.empty and not sources.rows_before.get("orders"):
            yield "the order files hold no order that could be compared"
        elif sources.gateway.empty and not sources.answers_before:
            yield "the gateway was asked about no order"


def _uncertain(result: Reconciliation, sources: Sources, rules: Rules) -> Iterator[str]:
    """Rejected rows and unverified items by group, where they exceed the allowance."""
    unverified = result.sides[result.sides["state"].eq(SetState.UNVERIFIED.value)]
    items, most = int(unverified["count"].sum()), allowance(sources, rules=rules)
    rejected = Counter(reject.source for reject in sources.rejects if reject.column != WHOLE_FILE)
    if items + len(sources.rejects) <= most:
        return
    groups = [f"{count} rows of {name} were rejected" for name, count in rejected.most_common()]
    reasons = Counter(result.unverified["reason"]).most_common()
    groups += [f"{count} sets are unverified ({why})" for why, count in reasons]
    named = ", ".join(groups[:GROUPS_DISPLAYED_MAX])
    more = f" and {len(groups) - GROUPS_DISPLAYED_MAX} more groups" * (
        len(groups) > GROUPS_DISPLAYED_MAX
    )
    yield f"{named}{more}: more than the {most} rows that may be ([verdict] in rules.toml)"
