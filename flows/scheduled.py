"""A run that a schedule started says itself what its schedule was declared to say, or does nothing.

Prefect's server forgets the parameters of a schedule that is switched off or on past its own pages
(`prefect deployment schedule pause`, the API): a night that moves money would become a dry run that
moves none, and nobody would hear of it.
"""

from prefect.context import FlowRunContext

from recon.model.errors import ConfigurationError


def refuse_forgotten(*names: str) -> None:
    """A run of a schedule that does not give these parameters does not begin.

    Raises:
        ConfigurationError: the schedule has lost what it was declared with.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled or all(name in run.parameters for name in names):
        return
    msg = (
        f"the schedule that started this run no longer says {' and '.join(names)}: Prefect forgets "
        "that when a schedule is paused or resumed by command line or API; nothing was done: run "
        "`prefect --no-prompt deploy --all` again, and then start what was due by hand"
    )
    raise ConfigurationError(msg)
