"""What decides over a whole file after its rows were read: control figures, all or nothing."""

from pathlib import Path

from recon.config.file_layouts import FileLayout
from recon.files.formats.raw_table import Declared, refuse
from recon.files.typing.control_figures import Counted, read_control_file, refuse_other_figures
from recon.model.words import Reject


def refuse_unproven(
    path: Path,
    *,
    declared: Declared | None,
    counted: Counted,
    rejects: tuple[Reject, ...],
    layout: FileLayout,
) -> None:
    """Refuse a file whose control figures differ, or with a bad row where all or nothing holds.

    Raises:
        SourceUnreadableError: naming the figure, or the first bad row.
    """
    if declared is not None:
        refuse_other_figures(declared, counted=counted, layout=layout, name=path.name)
    if layout.control_file:
        beside = read_control_file(path, ending=layout.control_file)
        refuse_other_figures(beside, counted=counted, layout=layout, name=path.name)
    if layout.whole_file and rejects:
        first = rejects[0]
        refuse(
            path.name,
            f"has {len(rejects)} rows that cannot be read, and its merchant wants all or nothing; "
            f"the first is line {first.line}, {first.column}: {first.reason}",
        )
