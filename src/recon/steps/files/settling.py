"""Files that a step is about to read are left alone until nobody writes to them any more."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from recon.config.file_layouts import FileLayout, layout_of
from recon.config.settings import AccountSettings
from recon.files.inbox.quiet_files import LOOKS_MAX, unsettled
from recon.steps.ground.environment import Environment


def still_written(
    paths: Iterable[Path],
    *,
    account: AccountSettings,
    layouts: tuple[FileLayout, ...] = (),
    environment: Environment,
) -> Mapping[Path, str]:
    """Files that kept changing however long they were waited for, and the reason in words.

    A file whose layout names a `done_file` is complete when that is there, and is not waited for.
    """
    settle = timedelta(seconds=account.settle_seconds)
    unsettled_paths = unsettled(
        (path for path in paths if not layout_of(path.name, layouts=layouts).done_file),
        settle=settle,
        clock=environment.clock,
        pause=environment.pause,
    )
    waited = LOOKS_MAX * account.settle_seconds
    why = (
        f"is still being written: it was waited for over {waited} seconds and never left alone for "
        f"{account.settle_seconds}; nothing of it was taken: run again when it is complete"
    )
    return dict.fromkeys(unsettled_paths, why)
