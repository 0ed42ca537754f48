"""The sentences that page one of plain files must carry, whatever its figures say."""

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.privacy.shown_text import scrubbed
from recon.steps.compare.carried import Tables
from recon.steps.files.incomplete import NO_LEDGER, why_incomplete


def incomplete_told(result: Reconciliation, *, sources: Sources, rules: Rules) -> tuple[str, ...]:
    """What an INCOMPLETE result of plain files lacks, each as a sentence for page one."""
    lacking = why_incomplete(result, sources=sources, rules=rules)
    given = ("no ledger was given (--ledger)" if each == NO_LEDGER else each for each in lacking)
    return tuple(f"Incomplete: {each.rstrip('.')}." for each in given)


def ignored_columns(tables: Tables) -> tuple[str, ...]:
    """Columns that nobody read, by file."""
    return tuple(
        f"{scrubbed(table.facts.source_file.name)}: nothing was read from the unknown columns "
        f"{', '.join(map(scrubbed, table.facts.ignored_columns))}."
        for several in tables.values()
        for table in several
        if table.facts.ignored_columns
    )
