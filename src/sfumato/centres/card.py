"""What a party shows to the others: a card with its name, its key and its certificate; and TLS made from cards.

In:   a name; the cards of the others.
Out:  a new identity, Card, TLS contexts in which both sides show the certificate of their card.
Not here: where they are kept (run/centre_home.py), who signs what (messages.py).

One Ed25519 key a party. It signs messages of the protocol, which begin with a word of their own, and TLS handshakes,
which begin with another (RFC 8446, 4.4.3): neither can be taken for the other. The certificate signs itself; what makes
it trusted is the card, exchanged between people. No authority is asked and no host name is looked at.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from sfumato.centres.round import Centre
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError

__all__ = ["PartyCard", "client_tls", "new_card", "server_tls"]

_YEARS = 10


@dataclass(frozen=True)
class PartyCard:
    """Public: who a party is, and at which address it is met (the coordinator's alone)."""

    name: str
    identity: str
    certificate: str
    address: str = ""

    def __post_init__(self) -> None:
        Centre(self.name, self.identity)
        try:
            found = x509.load_pem_x509_certificate(self.certificate.encode())
            key = found.public_key()
            own = isinstance(key, Ed25519PublicKey) and key.public_bytes_raw().hex() == self.identity
            found.verify_directly_issued_by(found)
        except (ValueError, TypeError, AttributeError, InvalidSignature) as error:
            raise InputError(f"The card of {self.name} has no certificate that can be read.") from error
        if not own:
            raise InputError(f"The card of {self.name} shows the certificate of another key.")

    @property
    def centre(self) -> Centre:
        return Centre(self.name, self.identity)

    def write(self, path: Place) -> None:
        """Write the card as a file that may be shown to everybody: it holds no secret key."""
        place_of(path).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Place) -> PartyCard:
        """The card of a file; InputError in words if it is none."""
        try:
            record = json.loads(place_of(path).read_text(encoding="utf-8"))
            return cls(**record)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{path}: no card can be read from it. A centre makes one with `sfumato centre init NAME`, as "
                "NAME/NAME.card. Nothing was run."
            ) from error

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PartyCard:
        return cls(**record)


def new_card(name: str, key: Ed25519PrivateKey, address: str = "") -> PartyCard:
    """The card of a key.

    >>> new_card("north", Ed25519PrivateKey.generate()).centre.name
    'north'
    """
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:60])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * _YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    text = certificate.public_bytes(Encoding.PEM).decode()
    return PartyCard(name, key.public_key().public_bytes_raw().hex(), text, address)


def server_tls(key: Path, own: PartyCard, others: Iterable[PartyCard]) -> ssl.SSLContext:
    """For the coordinator: it shows its card's certificate and speaks to nobody without one of the others'."""
    return _tls(ssl.PROTOCOL_TLS_SERVER, key, own, others)


def client_tls(key: Path, own: PartyCard, coordinator: PartyCard) -> ssl.SSLContext:
    """For a centre: it shows its card's certificate and speaks to this coordinator alone."""
    return _tls(ssl.PROTOCOL_TLS_CLIENT, key, own, [coordinator])


def _tls(protocol: int, key: Path, own: PartyCard, others: Iterable[PartyCard]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a card is trusted, wherever its holder sits
    context.verify_mode = ssl.CERT_REQUIRED
    chain = key.with_name("certificate.pem")
    chain.write_text(own.certificate, encoding="ascii")
    try:
        context.load_cert_chain(chain, key)
        context.load_verify_locations(cadata="".join(card.certificate for card in others))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{key} and the card of {own.name} do not belong together. Nothing was run.") from error
    return context
