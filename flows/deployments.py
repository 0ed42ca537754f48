"""Prefect deployments from the configuration: one night per account, and the forms of people.

What `prefect deploy --all` reads is generated from merchants.toml and retention.toml, so that no
account is forgotten and no removed one is left behind.
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from recon.config.retention import NightSchedule, Retention
from recon.config.settings import AccountSettings
from recon.model.errors import ConfigurationError

WORK_POOL = "recon"
BY_SCHEDULE = "schedule"
"""Recorded as who deleted when a schedule started the run."""

HEAD = """\
# Deployments of the flows, written by `python -m flows files` from merchants.toml (and, for
# housekeeping, retention.toml): change a schedule there and write this file anew; with `--all` it
# has the forms of parts of a night, too. `prefect --no-prompt deploy --all` reads it; first comes
# the pool, as that prints. A run of a schedule that is declared no more refuses to begin.
#
# Module entrypoints need the installed package, not a checkout, so nothing is pulled: an absent or
# null `pull` would make every run change into the folder of the machine that deployed. There is no
# limit of runs at a time: what keeps a night from running twice is the lock in recon's database. It
# ends with its process, where Prefect would hold a dead run's place for minutes. A form starts as a
# dry run; only a schedule moves money by itself.
"""

FORMS: dict[str, dict[str, dict[str, str]]] = yaml.safe_load(
    Path(__file__).with_name("deployments.yaml").read_text("utf-8")
)


def project_of(
    accounts: Mapping[str, AccountSettings], *, retention: Retention, parts: bool = False
) -> dict[str, Any]:
    """Return prefect.yaml as data; `accounts` by `<merchant>/<account>`, `parts`: with their forms.

    Raises:
        ConfigurationError: a cron line that Prefect does not understand.
    """
    nights = [_night(key, account) for key, account in sorted(accounts.items())]
    forms = FORMS["always"] | (FORMS["parts"] if parts else {})
    people = [{"name": name, **_form(**form)} for name, form in forms.items()]
    return {
        "name": WORK_POOL,
        "prefect-version": version("prefect"),
        "build": [],
        "push": [],
        "pull": [],
        "deployments": [*nights, _planned(people[0], retention), *people[1:]],
    }


def text_of(
    accounts: Mapping[str, AccountSettings], *, retention: Retention, parts: bool = False
) -> str:
    """Return prefect.yaml as text.

    Raises:
        ConfigurationError: a cron line that Prefect does not understand.
    """
    project = project_of(accounts, retention=retention, parts=parts)
    body = yaml.safe_dump(
        project, sort_keys=False, width=100, allow_unicode=True, default_style=None
    )
    return f"{HEAD}{body}"


def pool_text() -> str:
    """Return the template of the work pool: a run can set nothing of the process that it gets.

    Prefect fills a template from a run's own variables, and adds `env` where the template has one.
    Without the keys `command`, `env` and `working_dir` a run that sends them changes nothing.
    """
    template = {
        "job_configuration": {"stream_output": True},
        "variables": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    return json.dumps(template, indent=2) + "\n"


def _night(key: str, account: AccountSettings) -> dict[str, Any]:
    merchant_id, _, account_id = key.partition("/")
    entry = {
        "name": f"{merchant_id}-{account_id}",
        "description": "Settles and reconciles the last closed business date of "
        f"{account.name or 'account'} {account_id}{_shown(account.schedule)}.",
        "entrypoint": "flows.nightly:nightly",
        "tags": [
            *filter(None, [account.name]),
            *(f"merchant {merchant_id}", f"account {account_id}"),
            *_clock(account.schedule),
        ],
        "parameters": {"merchant_id": merchant_id, "account_id": account_id},
        **_where(),
    }
    where = f'merchants.toml: accounts."{key}"'
    # The slug never changes: under a new one a deploy adds a second schedule.
    planned = account.schedule and _schedule(
        account.schedule, where=where, slug="every-night", parameters={"mode": "live"}
    )
    return entry | {"schedules": [planned] if planned else []}


def _clock(schedule: NightSchedule | None) -> list[str]:
    """Return start time and time zone as a tag for people: Prefect's pages hide the zone."""
    if schedule is None:
        return []
    minute, hour, *days = schedule.cron.split(" ")
    daily = minute.isdecimal() and hour.isdecimal() and days == ["*"] * 3
    return [f"{f'{hour:0>2}:{minute:0>2}' if daily else schedule.cron} {schedule.zone}"]


def _shown(schedule: NightSchedule | None) -> str:
    return "".join(f"; by itself at {clock}" for clock in _clock(schedule))


def _planned(housekeeping: dict[str, Any], retention: Retention) -> dict[str, Any]:
    """Add the schedule, if declared, to the housekeeping form, which by itself only shows."""
    if retention.schedule is None:
        return housekeeping
    deletes = {"delete": retention.schedule_deletes, "name": BY_SCHEDULE}
    planned = _schedule(
        retention.schedule, where="retention.toml", slug="housekeeping", parameters=deletes
    )
    shown = f"{housekeeping['description'].removesuffix('.')}{_shown(retention.schedule)}."
    tags = [*housekeeping["tags"], *_clock(retention.schedule)]
    return {**housekeeping, "description": shown, "tags": tags, "schedules": [planned]}


def _schedule(
    schedule: NightSchedule, *, where: str, slug: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    from prefect.client.schemas.schedules import CronSchedule

    try:
        CronSchedule(cron=schedule.cron, timezone=schedule.zone)
    except ValueError:
        msg = f"{where}: schedule: {schedule.cron!r} is no cron line"
        raise ConfigurationError(msg) from None
    return {
        "cron": schedule.cron,
        "timezone": schedule.zone,
        "slug": slug,
        "active": True,
        "parameters": parameters,
    }


def _form(*, entrypoint: str, description: str) -> dict[str, Any]:
    return {"description": description, "entrypoint": entrypoint, "tags": ["people"], **_where()}


def _where() -> dict[str, Any]:
    return {"work_pool": {"name": WORK_POOL, "job_variables": {}}}
