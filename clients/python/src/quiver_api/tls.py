"""Certificates for a router that is reached over TLS."""

from __future__ import annotations

import ssl
from pathlib import Path


def certificates(ca: Path | str, certificate: Path | str, key: Path | str) -> ssl.SSLContext:
    """What `Quiver` and `AsyncQuiver` take as `tls`; all are files in PEM.

    `ca` is whose certificate the router must have; `certificate` and `key` are this client's own.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    return context
