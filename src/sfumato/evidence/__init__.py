"""Evidence: what was claimed, and whether it is true. Certificates and their independent verifier."""

from sfumato.core.certificate import Certificate
from sfumato.evidence.audit import AuditResult, audit
from sfumato.evidence.verify import Verification, verify

__all__ = ["AuditResult", "Certificate", "Verification", "audit", "verify"]
