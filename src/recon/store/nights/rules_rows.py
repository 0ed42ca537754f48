"""Every set of rules that a run ever used, by its digest."""

import json
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection, insert, select

from recon.config.rules import Rules, digest_of
from recon.model.errors import StoreError
from recon.store.schema import rules_version, run


def keep(connection: Connection, rules: Rules, *, at: datetime) -> None:
    """Keep the rules unless they are kept already."""
    known = select(rules_version.c.digest).where(rules_version.c.digest == rules.digest)
    if connection.execute(known).scalar_one_or_none() is None:
        document = json.dumps(rules.document, sort_keys=True)
        connection.execute(
            insert(rules_version).values(digest=rules.digest, document=document, first_used_at=at)
        )


def load(connection: Connection, digest: str) -> Rules | None:
    """The rules with this digest; None when they were never kept.

    Raises:
        ConfigurationError: this version of the product no longer understands them.
        StoreError: what is kept under this digest does not have it.
    """
    document = text_of(connection, digest)
    if not document:
        return None
    if digest_of_text(document) != digest:
        raise StoreError(_changed(digest))
    return Rules.of(json.loads(document), source=f"the rules {digest[:12]}")


def text_of(connection: Connection, digest: str) -> str:
    """The document that is kept under this digest, as it stands there; "" for none."""
    return str(
        connection.execute(
            select(rules_version.c.document).where(rules_version.c.digest == digest)
        ).scalar_one_or_none()
        or ""
    )


def changed_rules(connection: Connection) -> Iterator[str]:
    """Every set of rules that is not the one whose digest the runs bind, in words."""
    kept = {each.digest: each.document for each in connection.execute(select(rules_version))}
    for digest, document in sorted(kept.items()):
        if digest_of_text(document) != digest:
            yield _changed(digest)
    judged = connection.execute(select(run.c.rules_digest).distinct()).scalars()
    for digest in sorted({*judged} - {*kept, ""}):
        yield f"the rules {digest}, by which runs were judged, were taken away; {_PAST}"


def _changed(digest: str) -> str:
    return f"the rules {digest} say something else than then; {_PAST}"


_PAST = "they were changed past the code, each night has its own in proof/rules.json of its folder"


def digest_of_text(text: str) -> str:
    """The digest of rules as they were written, whatever version reads them; "" of none."""
    try:
        return digest_of(json.loads(text))
    except (ValueError, RecursionError):
        return ""
