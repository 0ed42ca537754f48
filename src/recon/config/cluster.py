"""Where work is done in parts (cluster.toml): this process, others of its machine, or Dask.

A part is always a pure function of its arguments, so that it can be repeated anywhere with the same
result. Money is never moved in parts, and parts never write to the database.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, Self, TypeVar

from pydantic import (
    Field,
    StringConstraints,
    model_validator,
)

from recon.config.declared import DeclaredTable

COMPARED_AT_ONCE_MAX = 64

Item = TypeVar("Item")
Done = TypeVar("Done")
SchedulerAddress = Annotated[
    str,
    StringConstraints(pattern=r"^(tls://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5})?$"),
]


class ClusterSettings(DeclaredTable):
    """What other processes do of a night, and of which machines (`cluster.toml`)."""

    address: SchedulerAddress = ""
    """"": this machine; else a scheduler of Dask, `tls://host:port`."""
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    """TLS towards the scheduler, both sides with certificates of one authority."""
    connect_seconds: float = Field(default=10, gt=0, le=600)
    result_seconds: float = Field(default=900, gt=0, le=86_400)
    """How long one part may take, waiting for a worker included."""
    compared_at_once: int = Field(default=1, ge=1, le=COMPARED_AT_ONCE_MAX)
    """Parts of a comparison; 1: this process does them one after another, more: so many processes
    of this machine do, or the workers of the address."""

    @model_validator(mode="after")
    def _certificates_of_a_scheduler(self) -> Self:
        named = [self.ca_file, self.certificate_file, self.key_file]
        if self.address and None in named:
            msg = f"{self.address} needs ca_file, certificate_file and key_file"
            raise ValueError(msg)
        if not self.address and any(named):
            msg = "ca_file, certificate_file and key_file are for an address tls://host:port"
            raise ValueError(msg)
        return self


class Workers(Protocol):
    """Executes work in parts."""

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """Apply `work`, a pure function of a module, to each item; yield the results in order.

        `needs` names the environment variables that the work needs, for workers whose environment
        is set up separately.
        """

    @property
    def helps(self) -> bool:
        """Whether the parts of a comparison are done by others."""


@dataclass(frozen=True, slots=True)
class InProcess:
    """Executes every part in this process, one after another."""

    helps: bool = False

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers."""
        _ = needs
        return map(work, items)


IN_PROCESS: Workers = InProcess()
