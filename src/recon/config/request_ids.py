"""What a merchant declares of the request ids in its files (`instructions` of an account)."""

from typing import Literal

from recon.config.declared import DeclaredTable


class RequestIds(DeclaredTable):
    """Whether another id means another movement."""

    ids: Literal["repeated", "unique"] = "repeated"
    """"unique": no movement is ever told under two ids, so two ids are two movements."""

    @property
    def are_unique(self) -> bool:
        """Two instructions of one payment, kind and amount with ids of their own both go."""
        return self.ids == "unique"
