"""Certificates for measurements and tests: an authority and what it signs, by the program `openssl`. ECDSA P-256, for a day."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


def make_authority(folder: Path, name: str = "authority") -> Pair:
    """An authority that signs itself. Takes 10 ms.

    Raises:
        subprocess.CalledProcessError: if openssl fails.
        FileNotFoundError: if it is not installed.
    """
    made = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    _openssl("req", "-x509", *_CURVE, "-subj", f"/CN={name}", *usage, "-keyout", str(made.key), "-out", str(made.certificate))
    return made


def sign(authority: Pair, folder: Path, common_name: str, addresses: Sequence[str] = (), *, file: str = "") -> Pair:
    """A certificate of somebody, or of a host at these IP addresses and names. Takes 15 ms.

    Raises:
        subprocess.CalledProcessError: if openssl fails.
    """
    made = Pair(folder / f"{file or common_name}.pem", folder / f"{file or common_name}.key")
    names = ",".join(f"IP:{one}" if one.replace(".", "").isdecimal() else f"DNS:{one}" for one in addresses)
    extensions = ("-addext", f"subjectAltName={names}") if names else ()
    _openssl(
        *("req", "-x509", *_CURVE, "-subj", f"/CN={common_name}", "-addext", "basicConstraints=critical,CA:FALSE", *extensions),
        *("-CA", str(authority.certificate), "-CAkey", str(authority.key)),
        *("-keyout", str(made.key), "-out", str(made.certificate)),
    )
    return made


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)  # noqa: S603, S607 - our own words
