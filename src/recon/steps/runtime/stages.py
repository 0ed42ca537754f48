"""What each stage of a night took and needed: one JSON file a run, one log line a stage.

`<reports>/metrics/<run id>.json` grows with each stage. Figures inform and prove nothing: what
cannot be written never stops a night.
"""

import json
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from recon.model.errors import ReconError
from recon.model.nights import StepSummary
from recon.model.uptime import give_back
from recon.notify.night_log import note
from recon.privacy.own_files import advise_kernel, make_folder, replace_result
from recon.privacy.shown_text import for_people
from recon.steps.runtime.environment import Environment
from recon.store.nights import runs

FOLDER = "metrics"
ENDED = ("end", "exit_code", "in_doubt_money", "not_sent_money", "stopped", "missing")
"""What the last stage tells of how the night ended, beside its counts."""
RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")
RESET_PEAK = "5"
"""What Linux takes as `the highest reading starts now`."""


def measured(
    stage: str, do: Callable[[], StepSummary], *, run_id: str, environment: Environment
) -> StepSummary:
    """Do one stage of a run and note what it took, also when it fails.

    Raises:
        ReconError: what the stage itself raises.
    """
    started_at = environment.clock()
    began, cpu = environment.uptime().milliseconds, _cpu_seconds()
    give_back()
    # The highest memory is that of the stage; where that cannot be, it is the process's.
    with suppress(OSError):
        advise_kernel(CLEAR_REFS, RESET_PEAK)
    summary, failed = None, ""
    try:
        summary = do()
        # It goes to terminals, logs and Prefect, and may quote what came from outside.
        if (sentence := for_people(summary.sentence)) != summary.sentence:
            summary = replace(summary, sentence=sentence)
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        figures: dict[str, Any] = {
            "stage": stage,
            "started_at": started_at.isoformat(timespec="milliseconds"),
            "seconds": (environment.uptime().milliseconds - began) / 1000,
            "cpu_seconds": round(_cpu_seconds() - cpu, 3),
            "peak_rss_bytes": _peak_bytes(),
            "rows": {
                name: count
                for name, count in (summary.figures if summary else {}).items()
                if isinstance(count, int) and name not in ENDED
            },
        } | ({"failed": failed} if failed else {})
        figures |= {
            name: summary.figures[name] for name in ENDED if summary and name in summary.figures
        }
        summary_text = summary.sentence if summary else f"{stage} stopped with {failed}."
        with suppress(ReconError, OSError):
            _save(run_id, figures=figures, sentence=summary_text, environment=environment)
    return summary


def _save(run_id: str, *, figures: dict[str, Any], sentence: str, environment: Environment) -> None:
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    of_run = {
        "run_id": run_id,
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "business_date": run.business_date.isoformat(),
        "mode": run.mode.value,
    }
    note(sentence, fields={**of_run, **figures})
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    path = account.reports / FOLDER / f"{run_id}.json"
    make_folder(path.parent)
    earlier: list[Any] = []
    with suppress(OSError, ValueError, KeyError, TypeError):
        earlier = [*json.loads(path.read_text("utf-8"))["stages"]]
    document = {**of_run, "stages": [*earlier, figures]}
    replace_result(path, json.dumps(document, indent=2) + "\n")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_bytes() -> int:
    with suppress(OSError, ValueError, LookupError):
        kilobytes = {line.split()[0]: line.split()[1:] for line in STATUS.read_text().splitlines()}
        return int(kilobytes["VmHWM:"][0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT_BYTES
