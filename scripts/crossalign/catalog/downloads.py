"""What the programs that fetch are told."""

from crossalign.catalog.labelled import hub_split
from crossalign.fetch.register import Dataset, Model


def file_settings(row: Dataset) -> dict[str, object]:
    """What the register says of a file itself: when that changes the file is another one."""
    told = {"url": row.url, "bytes": row.bytes, "checksum": row.checksum, "version": row.version}
    return {name: value for name, value in told.items() if value not in (None, "")}


def split_settings(config: dict, name: str, split: str) -> dict[str, object]:
    """Which files of the hub are a split of a labelled set."""
    found = hub_split(config, name, split)
    return {key: getattr(found, key) for key in ("name", "split", "hub", "revision", "files")}


def way_settings(config: dict, row: Dataset | None = None, model: Model | None = None) -> dict[str, object]:
    """How a file is fetched, and from where else; none of this changes what it is."""
    settings = config["downloads"]
    told = {
        "base_mirror": settings["mirror"],
        "base_mirror_checksums": settings["mirror_checksums"] == "mirror",
        "offline": settings["offline"],
        "attempts": settings["attempts"],
        "lock": settings["lock"],
    }
    told |= {"mirror": row.mirror, "licence": row.licence} if row else {}
    told |= {"packages": list(model.packages)} if model else {}
    return {name: value for name, value in told.items() if value not in (None, False, "", [])}
