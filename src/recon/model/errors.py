"""Errors that stop what a caller of recon asked for.

Bad data is never an exception: readers return `(good, bad)` pairs. The tree:

    ReconError
    ├── UsageError                 wrong arguments or configuration      exit 2
    │   ├── ConfigurationError     a file, key or variable is missing or wrong
    │   └── SourceMissingError     a named input file does not exist
    ├── SourceUnreadableError      a file is not what its name says       exit 1
    │   └── ReaderBrokenError      it crashed its reader process, or exceeded its limits
    ├── AmountError                text that is not an amount of its currency
    ├── NightHeldError             another run holds this night           exit 75
    ├── GateClosedError            a proof before money failed            exit 4
    ├── EndorsementError           a decision is not signed by approvals  exit 4
    ├── SignerError                the signer is absent or refuses; nothing was sent
    ├── StoreError                 the database cannot do its work        exit 1
    │   ├── StoreLockedError       another process holds the database
    │   ├── HistoryBrokenError     the hash chain does not close
    │   └── SpillError             an answer kept in a file does not fit the database
    ├── ArchiveError               the archive of nights cannot be used    exit 1
    │   ├── ArchiveBrokenError     its content is not what was sealed
    │   │   └── FactsLostError     rows of a file that may still be there
    │   └── NightPurgedError       the folder of a run was purged under retention
    ├── ClusterError               work in parts cannot be done on a cluster exit 1
    ├── InputsMissingError         inputs of a run are not stored          exit 1
    ├── OutputError                a report cannot be written             exit 1
    │   └── FolderError            a named folder cannot be used at all   exit 2
    └── Defect                     an invariant of ours does not hold: a bug
"""

from recon.privacy.displayed_text import for_people


class ReconError(Exception):
    """Something went wrong that the caller must deal with."""

    exit_code: int = 1

    def __init__(self, sentence: str = "") -> None:
        # The text goes to terminals, logs, tables and Prefect: card numbers in it are masked.
        super().__init__(for_people(sentence))


class UsageError(ReconError):
    """The call or the configuration is wrong."""

    exit_code = 2


class ConfigurationError(UsageError):
    """A configuration file, key or environment variable is missing or wrong."""


class SourceMissingError(UsageError):
    """A named input file does not exist."""


class SourceUnreadableError(ReconError):
    """An input file is not what its name says it is."""


class ReaderBrokenError(SourceUnreadableError):
    """A file broke its reader, or needs more memory or time than files may take."""


class AmountError(ReconError, ValueError):
    """The text is not an amount of its currency."""


class NightHeldError(ReconError):
    """Another run holds this merchant, account and business date."""

    exit_code = 75


class GateClosedError(ReconError):
    """A control total or the history chain failed before money could move."""

    exit_code = 4


class EndorsementError(ReconError):
    """A person's decision does not bear the desk's signature."""

    exit_code = 4


class SignerError(ReconError):
    """The process that holds the sign key is not there, or refuses; nothing was sent."""


class StoreError(ReconError):
    """The database cannot do its work."""


class StoreLockedError(StoreError):
    """Another process holds the database."""


class HistoryBrokenError(StoreError):
    """The hash chain of the history does not close."""


class SpillError(StoreError):
    """An answer that was kept in a file does not fit the database."""


class ArchiveError(ReconError):
    """The archive of nights cannot be reached, written or read."""


class ArchiveBrokenError(ArchiveError):
    """A file of the archive is not what was sealed, or of a version that nobody here knows."""


class FactsLostError(ArchiveBrokenError):
    """A file of facts is missing or changed; the file that it was made of may still be there."""

    def __init__(self, sentence: str = "", *, path: str = "") -> None:
        super().__init__(sentence)
        self.path = path
        """Path relative to the archive."""


class NightPurgedError(ArchiveError):
    """The folder of a night was purged under retention; its totals and manifests are kept."""


class ClusterError(ReconError):
    """The cluster that does work in parts cannot do it; nothing but reading was given to it."""


class InputsMissingError(ReconError):
    """What a night compared was not kept, or is no longer whole: it cannot be rebuilt."""


class OutputError(ReconError):
    """A report cannot be written."""


class FolderError(OutputError):
    """The folder that results were to go to cannot be made or written; nothing was begun."""

    exit_code = 2


class Defect(ReconError):  # noqa: N818 - a defect is the word for a bug of ours
    """An invariant of ours does not hold; this is a bug."""
