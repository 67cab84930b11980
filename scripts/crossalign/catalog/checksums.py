"""What the raw data files of a run were: checksums from the lock file, the demo world's list, or the register."""

from pathlib import Path

from crossalign.catalog.labelled import registered_files
from crossalign.fetch.lock import read_lock


def known_checksums(config: dict, base: Path) -> dict[str, str]:
    """path -> checksum of every file of which one is known; relative places in the config start at `base`."""
    downloads = config["downloads"]
    found = registered()
    if downloads["mirror_checksums"] == "mirror":
        # The register's checksums are those of the real files, not of the demo world's.
        found = listed(base / str(downloads["mirror"]).removeprefix("file://") / "SHA256SUMS")
    locked = read_lock(base / downloads["lock"])
    return found | {path: f"sha256:{row.sha256}" for path, row in locked.items()}


def registered() -> dict[str, str]:
    """path -> checksum of the published file, where the register has one."""
    return {path: row.checksum for path, row in registered_files().items() if row.checksum}


def listed(path: Path) -> dict[str, str]:
    """The checksums of a SHA256SUMS file; none where it is not there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.split(maxsplit=1) for line in lines if len(line.split()) > 1)
    return {name.lstrip("*"): f"sha256:{digest}" for digest, name in pairs}
