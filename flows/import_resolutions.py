"""Flow `import-resolutions`: finance's answers from a workbook that lies in a reports folder.

Only workbooks below a declared reports folder are opened: whoever may start a flow must not be able
to have any file of the machine read.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import SecretStr

from flows.approve import ShortName
from flows.outcome import in_words
from flows.page_text import on_a_page, table_row
from recon.model.errors import UsageError
from tasks.running import opened_environment, say, sentences_only

if TYPE_CHECKING:
    from recon.config.settings import Settings
    from recon.model.resolutions import Import

REFUSALS_SHOWN_MAX = 20


@flow(
    name="import-resolutions",
    flow_run_name="answers of {answered_by}",
    retries=0,
    persist_result=False,
)
@in_words()
def import_resolutions(
    workbook: Path, answered_by: ShortName, code: SecretStr | None = None
) -> State[Any]:
    """Take in the answers of a filled-in workbook; the same file again changes nothing.

    Args:
        workbook: The file, inside the reports folder of its account.
        answered_by: Your short name in approvers.toml: you brought these answers.
        code: Your current one-time code.
    """
    with sentences_only("import-resolutions"):
        from recon.cli.workbooks import form, workbooks
        from recon.steps.night.report import rebuild_answered
        from recon.steps.people import returned_answers
        from recon.steps.people.at_desk import IMPORT, file_body, import_of
        from recon.steps.people.at_desk import say as say_at_desk
        from reports.reading.import_workbook import write_import

        with opened_environment() as environment:
            path = returned_path(workbook, settings=environment.settings)
            who, read = (answered_by, code), file_body(path)
            reply = say_at_desk(IMPORT, read, who=who, environment=environment, form=form())
            done = import_of(reply)
            again = rebuild_answered(done, environment=environment, workbooks=workbooks())
        sentence = f"{returned_answers.sentence_of(done)} {again}".strip()
        say(sentence)
        if not done.repeated:
            write_import(done, beside=path)
        _publish(done, sentence=sentence)
        return Completed(name="Taken with refusals" if done.refusals else "Taken", message=sentence)


def returned_path(workbook: Path, *, settings: "Settings") -> Path:
    """The file, if it lies in a reports folder that merchants.toml declares.

    Raises:
        UsageError: it lies somewhere else.
    """
    folders = [account.reports.resolve() for account in settings.accounts.values()]
    path = workbook.resolve()
    if not any(path.is_relative_to(folder) for folder in folders):
        named = ", ".join(sorted(str(folder) for folder in folders))
        msg = f"{workbook} is not in a reports folder ({named}); put it there and start again"
        raise UsageError(msg)
    return path


def _publish(done: "Import", *, sentence: str) -> None:
    """What was refused, where people look for it."""
    lines = [f"# {on_a_page(done.name)}", "", on_a_page(sentence), ""]
    if done.refusals:
        lines += ["| cell | why it was not taken |", "|---|---|"]
        lines += [
            table_row(refusal.cell, refusal.reason)
            for refusal in done.refusals[:REFUSALS_SHOWN_MAX]
        ]
    create_markdown_artifact("\n".join(lines), key="answers-taken", description=on_a_page(sentence))
