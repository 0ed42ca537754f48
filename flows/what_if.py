"""Flow `what-if`: past nights under candidate rules, before anybody changes the real ones.

The candidate is read from a reports folder, as is every file that a form may open.
"""

from datetime import UTC, date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.artifacts import on_a_page, table_lines
from flows.nightly import GatewayId
from flows.outcome import as_flow
from tasks.night_tasks import echo, opened_environment

if TYPE_CHECKING:
    from recon.steps.compare.what_if import WhatIf

KINDS_DISPLAYED_MAX = 50
"""Maximum lines of the page; the workbook has all of them."""


@as_flow("what-if", named="what-if {merchant_id}/{account_id} {first} to {last}")
def what_if(
    merchant_id: GatewayId, account_id: GatewayId, rules: Path, *, first: date, last: date
) -> State[Any]:
    """Judge past nights again under other rules, each on the simulated night before it.

    Nothing is moved, signed or judged anew; the history keeps the digest of the answer.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        rules: The candidate rules, a file like rules.toml inside a reports folder.
        first: The first business date.
        last: The last business date.
    """
    from flows.people import returned_path
    from recon.config.settings import load_rules
    from recon.steps.compare.what_if import note_answer
    from recon.steps.compare.what_if import what_if as ask
    from reports.reading.what_if_workbook import write_what_if

    account = (merchant_id, account_id)
    with opened_environment() as environment:
        settings = environment.settings
        path = returned_path(rules, settings=settings)
        candidate = load_rules(config_dir=settings.config_dir, rules_file=path)
        answer = ask(
            candidate,
            account=account,
            first=first,
            last=last,
            environment=environment,
            progress=echo,
        )
        note_answer(answer, account=account, environment=environment)
        reports = settings.account(merchant_id, account_id=account_id).reports
        at = environment.clock().astimezone(UTC)
    name = f"what-if-{merchant_id}-{account_id}-{first}-{last}.xlsx"
    workbook = write_what_if(answer, path=reports / name, at=at)
    sentence = answer.sentence()
    page = page_of(answer, workbook=workbook)
    create_markdown_artifact(
        page, key=f"what-if-{account_id}".lower(), description=on_a_page(sentence)
    )
    return Completed(name="Judged again", message=sentence)


def page_of(answer: "WhatIf", *, workbook: Path) -> str:
    """Return the Markdown page of what the candidate changes."""
    from recon.steps.compare.what_if import moved

    kinds = [*moved(answer.nights)]
    lines = ["# What if", "", on_a_page(answer.sentence()), "", f"Workbook: {workbook}", ""]
    lines += [f"- {on_a_page(str(rule))}" for rule in answer.rules]
    lines += [f"- {rule.key} decides what a night reads: not played" for rule in answer.not_played]
    rows = (
        (str(kind.business_date), kind.before, kind.after, str(kind.count), kind.money)
        for kind in kinds[:KINDS_DISPLAYED_MAX]
    )
    lines += ["", *table_lines(("night", "was", "would be", "sets", "money"), rows)]
    if len(kinds) > KINDS_DISPLAYED_MAX:
        lines += ["", f"and {len(kinds) - KINDS_DISPLAYED_MAX} more lines in the workbook"]
    return "\n".join(lines)
