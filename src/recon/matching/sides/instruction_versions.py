"""Instructions that are told more than once: a repeat is skipped, a later word supersedes.

Each instruction of ours is one move of money, however many files tell of it.
"""

from dataclasses import replace

import numpy as np

from recon.matching.frames.sources import LoadCounts, Sources
from recon.matching.frames.versions import CONFLICT, NEW, REPEAT, SUPERSEDED, versions
from recon.matching.sides.instruction_side import TOLD_APART, started_at

_ID = ["merchant_id", "account_id", "instruction_id"]
_SINCE = "since"


def with_each_instruction_once(sources: Sources) -> Sources:
    """The sources with every instruction once; those told in ways that exclude each other stay.

    Of one that changed its state the row with the latest outcome, else sending, else approval
    counts. What was skipped is counted for T2.
    """
    rows = sources.instructions
    if rows is None or not rows.duplicated(_ID).any():
        return sources
    groups = rows.groupby(_ID, sort=False).ngroup().to_numpy().astype(np.intp)
    dated = rows.assign(**{_SINCE: started_at(rows).view("datetime64[us]")})
    outcome = versions(dated, groups=groups, newest=_SINCE)
    kept = np.isin(outcome, (NEW, CONFLICT))
    once = rows.assign(**{TOLD_APART: outcome == CONFLICT})[kept].reset_index(drop=True)
    counts = LoadCounts(
        accepted=len(rows),
        new=len(once),
        repeat=int((outcome == REPEAT).sum()),
        superseding=int((outcome == SUPERSEDED).sum()),
    )
    merged = {**sources.merged_rows, "instructions": counts}
    return replace(sources, instructions=once, merged_rows=merged)
