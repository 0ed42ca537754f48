"""What the doctor looks at on this machine: clock, disk, and who else may change what decides."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from recon.model.errors import ReconError
from recon.store.database.engine import Store
from recon.store.nights import runs
from recon.telling.night_log import LOG_VARIABLE, open_log

CLOCK_BACK_MAX = timedelta(minutes=1)
DISK_FREE_MIN_BYTES = 200 * 1024 * 1024
"""What a night wants free before it begins, and what the doctor looks for."""


def clock_told(store: Store, *, zone: str, now: datetime) -> str:
    """Our clock beside the newest thing the database has seen, and the time zone of nights.

    Raises:
        ReconError: the database has a run from our future: this clock was set back.
    """
    with store.reading() as connection:
        newest = runs.newest_start(connection)
    clock = f"{now:%Y-%m-%d %H:%M:%S} UTC, business dates in {zone}"
    if newest is not None and newest - now > CLOCK_BACK_MAX:
        msg = (
            f"{clock}; but a run began at {newest:%Y-%m-%d %H:%M} UTC, which is still to come: set "
            "this machine's clock (NTP)"
        )
        raise ReconError(msg)
    return clock


def room_told(path: Path) -> str:
    """How much a disk has left.

    Raises:
        ReconError: too little for a night, or no such folder.
    """
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        msg = f"{path} cannot be looked at ({error.strerror})"
        raise ReconError(msg) from None
    if free < DISK_FREE_MIN_BYTES:
        needed = DISK_FREE_MIN_BYTES // 1024**2
        msg = f"{path}: only {free // 1024**2} MiB are free; a night needs {needed}"
        raise ReconError(msg)
    return f"{path}, {free // 1024**3} GiB free"


def permissions_told(store: Store, *, config_dir: Path | None, variables: Mapping[str, str]) -> str:
    """That nobody else can change the configuration or read and change the database's file.

    Raises:
        ReconError: naming what is open to others, and the command that closes it.
    """
    path = store.path
    config = [config_dir, *sorted(config_dir.glob("*.toml"))] if config_dir else []
    # Where others reach the folder of a SQLite database; the neighbours of its file are alike.
    is_reached = path is not None and path.parent.stat().st_mode & stat.S_IXOTH
    database = [path] if path is not None and is_reached else []
    cures = [
        *(f"chmod o-w {path}" for path in _open_to_others(config, mode=stat.S_IWOTH)),
        *(f"chmod o-rwx {path}" for path in _open_to_others(database, mode=stat.S_IRWXO)),
    ]
    if cures:
        msg = f"others on this machine could read or change what decides: {'; '.join(cures)}"
        raise ReconError(msg)
    open_log(variables)
    log = variables.get(LOG_VARIABLE, "").strip()
    return f"user {os.geteuid()}; others change nothing; " + (
        f"nights are logged in {log}" if log else f"no log for machines ({LOG_VARIABLE})"
    )


def _open_to_others(paths: Iterable[Path], *, mode: int) -> Iterator[Path]:
    for path in paths:
        if path.stat().st_mode & mode:
            yield path
