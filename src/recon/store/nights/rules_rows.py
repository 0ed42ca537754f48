"""Every set of rules that a run ever used, by its digest."""

import json
from datetime import datetime

from sqlalchemy import Connection, insert, select

from recon.config.rules import Rules, with_names_of_today
from recon.store.schema import rules_version


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
    """
    document = connection.execute(
        select(rules_version.c.document).where(rules_version.c.digest == digest)
    ).scalar_one_or_none()
    if document is None:
        return None
    return Rules.of(with_names_of_today(json.loads(document)), source=f"the rules {digest[:12]}")
