"""Files of each next day for a demo that goes on by itself, as under `make serve`.

A schedule's nights would find an empty inbox after the first one: whoever looks at Prefect next
morning would see a merchant whose shop, gateway and banks sent nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NoReturn

from recon.cli.demo_folder import DemoFolder, recall, remember
from recon.cli.demo_gateway import health
from recon.cli.demo_work import DAYS_MAX, write_files
from recon.model.business_date import BusinessCalendar
from recon.model.errors import ConfigurationError
from recon.model.words import Clock

DELIVERED_AFTER = timedelta(minutes=15)
"""A date has closed when its files come."""
LOOK_SECONDS = 60
UNANSWERED_MAX = 60
"""So many looks in a row a sandbox may leave unanswered, as after a laptop's night."""


def deliver_until_stopped(
    demo: DemoFolder, *, clock: Clock, sleep: Callable[[float], None], tell: Callable[[str], None]
) -> NoReturn:
    """Look every LOOK_SECONDS; the first look must be answered.

    Raises:
        ConfigurationError: nothing is prepared, or no sandbox answers for so long.
    """
    unanswered = UNANSWERED_MAX
    while True:
        try:
            for day in deliver_due(demo, now=clock()):
                tell(f"Delivered: the files of {day}")
            unanswered = 0
        except ConfigurationError as error:
            unanswered += 1
            if unanswered > UNANSWERED_MAX:
                raise
            tell(f"{error}; nothing was delivered, the next look is in {LOOK_SECONDS} s")
        sleep(LOOK_SECONDS)


def deliver_due(demo: DemoFolder, *, now: datetime) -> Iterator[date]:
    """Write the files of each date that has closed since the newest one that lies ready.

    Args:
        demo: A folder that was prepared, whose sandbox answers.
        now: The machine's time.

    Raises:
        ConfigurationError: nothing is prepared, or no sandbox answers.
    """
    memory = recall(demo)
    if memory is None or not memory.prepared or not health(memory.port):
        msg = f"{demo.root} is no prepared demo whose sandbox answers: `make serve` starts both"
        raise ConfigurationError(msg)
    calendar = BusinessCalendar.of()
    its_time = now + timedelta(seconds=memory.clock_shift)
    newest = date.fromisoformat(memory.day)
    for number in range(1, DAYS_MAX + 1):
        day = newest + timedelta(days=number)
        if calendar.closes_at(day) + DELIVERED_AFTER > its_time:
            return
        memory = replace(memory, day=day.isoformat())
        write_files(demo, memory)
        remember(demo, memory)
        yield day
