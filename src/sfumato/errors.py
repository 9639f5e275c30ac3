"""Every error sfumato raises, in one tree.

    SfumatoError
    ├── InputError                 what was given cannot be used (also a ValueError)
    │   ├── PrivacyParameterError    ε, δ, sensitivity, adjacency
    │   ├── SchemaError              a public description that contradicts itself or is missing
    │   ├── DataError                a table or array of the wrong kind
    │   ├── StudyError               a study file that says something impossible; carries its problems
    │   └── PlanError                a study whose promises cannot be kept by any plan
    ├── LedgerError                the ledger file cannot be used
    │   ├── LedgerLockedError        another process holds it
    │   ├── LedgerCorruptError       it is not, or no longer, a ledger
    │   ├── UnknownDatasetError      nothing was granted for this dataset
    │   └── OverspendError           the grant does not cover the request
    ├── CertificateError           a certificate that cannot be read
    │   ├── CertificateVersionError  written by a newer sfumato
    │   └── VerificationError        readable, and not true
    ├── CentreError                a computation of several institutions that cannot go on
    │   ├── MessageError             a message that is not what the protocol asks for
    │   ├── RefusedError             a centre does not take part in this round
    │   │   └── OtherRoundError      … because it is not the one it agreed to
    │   └── RoundFailedError         a round that ended without a result
    ├── UnfinishedError            a run ended before its results were in their place
    └── UnprovedError              asked to certify something without a proof

    UserWarning
    └── UndeclaredCellWarning      a cell that the schema says does not exist, and where it went

A message says where, what was asked, what is missing, what to do next, and that nothing was spent.
It never quotes a private value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CentreError",
    "CertificateError",
    "CertificateVersionError",
    "DataError",
    "InputError",
    "LedgerCorruptError",
    "LedgerError",
    "LedgerLockedError",
    "MessageError",
    "OtherRoundError",
    "OverspendError",
    "PlanError",
    "PrivacyParameterError",
    "RefusedError",
    "RoundFailedError",
    "SchemaError",
    "SfumatoError",
    "StudyError",
    "UndeclaredCellWarning",
    "UnfinishedError",
    "UnknownDatasetError",
    "UnprovedError",
    "VerificationError",
]


class SfumatoError(Exception):
    """Anything sfumato refuses to do. Unless the message says otherwise nothing was run and nothing was spent."""


class InputError(SfumatoError, ValueError):
    """A value that cannot be used."""


class PlanError(InputError):
    """A study whose promises cannot be kept by any plan."""


class PrivacyParameterError(InputError):
    """A privacy parameter that is missing or meaningless."""


class SchemaError(InputError):
    """A public description of the data that is missing or contradicts itself."""


class DataError(InputError):
    """A table or array that does not fit what was declared. The message never contains its values."""


class StudyError(InputError):
    """A study that cannot be used. `problems` holds every finding with its place; the message shows them."""

    def __init__(self, message: str, problems: tuple[Any, ...] = ()) -> None:
        self.problems = problems
        super().__init__("\n".join([message, *(problem.describe() for problem in problems)]))


class UndeclaredCellWarning(UserWarning):
    """A cell is missing or unlisted although its domain declares no place for it: it went to the fixed one.

    For the curator alone: whether it was given changes no exit code, no file and nothing that is published.
    """


class LedgerError(SfumatoError):
    """The ledger cannot be used as asked."""


class LedgerLockedError(LedgerError):
    """Another process holds the ledger and did not let go in time."""


class LedgerCorruptError(LedgerError):
    """The file is not a ledger, or is damaged."""


class UnknownDatasetError(LedgerError):
    """Nothing was ever granted for this dataset and unit."""


class OverspendError(LedgerError):
    """The grant does not cover the request. Carries `requested`, `remaining` and `difference` as text for display."""

    def __init__(self, message: str, *, requested: str, remaining: str, difference: str) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining
        self.difference = difference


class CertificateError(SfumatoError):
    """A certificate that cannot be read."""


class CertificateVersionError(CertificateError):
    """A certificate written by a newer sfumato."""


class VerificationError(CertificateError):
    """A certificate that was read and does not hold. `field` names the entry that is wrong."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class CentreError(SfumatoError):
    """A computation of several institutions cannot go on."""


class MessageError(CentreError):
    """A message that is malformed, forged, replayed or out of turn. It is ignored and its sender counts as absent."""


class RefusedError(CentreError):
    """A centre does not take part: what it is asked for is not what it agreed to. Nothing left the centre."""


class OtherRoundError(RefusedError):
    """What the coordinator offers is not what the centre agreed to, or not what the study asks for."""


class RoundFailedError(CentreError):
    """A round ended without a result. `revealed` says whether the sum may be known to the coordinator all the same."""

    def __init__(self, message: str, *, revealed: bool = False) -> None:
        super().__init__(message)
        self.revealed = revealed


class UnfinishedError(SfumatoError):
    """A run ended before its results were in their place. The message says what is paid, what is kept, how to go on."""


class UnprovedError(SfumatoError):
    """A certificate was asked for something that has no proof."""
