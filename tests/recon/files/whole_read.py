"""An order file as a night reads it, its parts put together: small enough here to be held whole."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.kinds.spooled_file import spooled_file
from recon.model.words import Reject, SourceFile


class OrderFile(NamedTuple):
    """One order file, read."""

    orders: pd.DataFrame
    actions: pd.DataFrame
    rejects: tuple[Reject, ...]
    source_file: SourceFile


def read_order_file(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> OrderFile:
    """Read it to its end."""
    with spooled_file(path, rules=rules, layout=layout, keep=True) as read:
        parts = list(read.parts())
    frames = [pd.concat(frames, ignore_index=True) for frames in zip(*parts, strict=True)]
    orders, actions = frames or [pd.DataFrame({"order_no": []})] * 2
    return OrderFile(orders, actions, read.rejects, read.source_file)
