"""Where the source is shown: what the environment says, else where the clone came from."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

# As git writes addresses for ssh: git@host:owner/name. One letter and a colon is a drive.
SHORT = re.compile(r"(?:[^@/\s]+@)(?P<host>[^:/@\s]{2,}):(?P<path>[^\s]+)")


def found(folder: Path) -> str | None:
    """The address on the web of what the clone in a folder came from; None where it has none."""
    if not (folder / ".git").exists():  # or git would answer for a repository further up
        return None
    asked = ["git", "config", "--get", "remote.origin.url"]
    try:
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git here
        return None
    return on_the_web(done.stdout)


def on_the_web(remote: str) -> str | None:
    """The https address of a remote of git, without names and tokens of users; or None.

    >>> on_the_web("git@example.org:someone/omma.git")
    'https://example.org/someone/omma'
    >>> on_the_web("https://user:token@example.org/someone/omma.git")
    'https://example.org/someone/omma'
    >>> on_the_web("/home/someone/omma")
    """
    short = SHORT.fullmatch(remote.strip())
    if short is not None:
        return _address(short["host"], None, short["path"])
    try:
        parts = urlsplit(remote.strip())
        port = parts.port if parts.scheme == "https" else None  # that of ssh is not of the web
    except ValueError:  # a port or a host that is none
        return None
    if parts.scheme not in ("https", "ssh"):
        return None
    return _address(parts.hostname or "", port, parts.path)


def _address(host: str, port: int | None, path: str) -> str | None:
    """Names of machines without a dot, and their numbers, are known at home only."""
    path = path.strip("/").removesuffix(".git")
    if "." not in host.strip(".") or _is_number(host) or not path:
        return None
    return f"https://{host}{'' if port is None else f':{port}'}/{path}"


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
