"""Certificates for tests, made by openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owned:
    """A certificate and its key, files in PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Somebody who makes certificates, in a folder of its own."""

    folder: Path
    own: Owned

    @staticmethod
    def new(folder: Path) -> Authority:
        """Make one in a new folder."""
        folder.mkdir()
        own = Owned(folder / "ca.pem", folder / "ca.key")
        _openssl(
            *("req", "-x509", "-new", "-nodes", *_KEY, "-keyout", own.key, "-out", own.certificate),
            *("-subj", f"/CN={folder.name}", "-days", "2"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )
        return Authority(folder, own)

    def give(self, name: str, *, kind: str = "DNS", days: int = 2) -> Owned:
        """Make a certificate for a name; with `days` below nothing one that is expired."""
        stem = self.folder / name.replace("/", "_").replace(":", "_")
        own = Owned(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extensions = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={kind}:{name}\n")
        _openssl("req", "-new", "-nodes", *_KEY, "-keyout", own.key, "-out", request, "-subj", "/CN=whatever")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.own.certificate, "-CAkey", self.own.key),
            *("-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", own.certificate),
        )
        own.key.chmod(0o600)
        return own


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True)
