"""Nights whose folder was let go: what is kept of one, and the sentence for whoever asks for it."""

from recon.archive.manifest import MANIFEST
from recon.model.errors import NightLetGoError
from recon.steps.ground.kept_decisions import DECISIONS
from recon.steps.ground.night_folder import SIGNED
from recon.store import Connection
from recon.store.nights.let_go_rows import let_go_of

KEPT_FILES = frozenset(
    {"results/breaks.parquet", "proof/totals.parquet", f"proof/{DECISIONS}", "proof/rules.json"}
)
"""Of a night that is let go, beside every manifest and what people put their names under."""
SIGNED_FILES = ("proof/workbook.xlsx", SIGNED)
"""Beginnings of what is kept too, where somebody signed the night."""


def is_kept(path: str, *, is_signed: bool = False) -> bool:
    """Whether a file stays when its night goes; `path` is from the night's folder."""
    name = path.rpartition("/")[2]
    return name == MANIFEST or path in KEPT_FILES or (is_signed and path.startswith(SIGNED_FILES))


def refuse_let_go(connection: Connection, run_id: str) -> None:
    """Refuse to read what went with the folder of a night.

    Raises:
        NightLetGoError: it was let go; the sentence says when and by whom.
    """
    going = let_go_of(connection, run_id)
    if going is not None:
        raise NightLetGoError(str(going))
