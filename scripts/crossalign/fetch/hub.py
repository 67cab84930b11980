"""Ask the model hub what a repository holds at a revision, and fetch its files: all by the library huggingface_hub.

HF_ENDPOINT names another hub, and the library's usual ways of giving a token work.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from crossalign.fetch.checksums import Expected
from crossalign.fetch.retry import RetryPolicy, SourceError, TransientError, retry

Answer = TypeVar("Answer")
# Without this the library fetches and stores a registry of its own to describe us to the hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def is_commit(revision: str) -> bool:
    """Whether a revision can never move."""
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None


def repository_files(kind: str, repository: str, revision: str, policy: RetryPolicy) -> tuple[str, dict[str, Expected]]:
    """The commit that a revision of a `dataset` or `model` repository is now, and what each of its files must be."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=_endpoint())
    info = _ask(
        lambda: api.repo_info(
            repository, repo_type=kind, revision=revision, files_metadata=True, timeout=policy.timeout
        ),
        f"{kind} {repository} at revision {revision}",
        policy,
    )
    if not info.sha or info.siblings is None:
        raise SourceError(f"the hub's answer about {repository} names no commit or no files")
    # Large files are identified by sha256 and the others by git blob id.
    identities = {
        file.rfilename: (file.size, f"sha256:{file.lfs.sha256}" if file.lfs else f"git:{file.blob_id}")
        for file in info.siblings
    }
    return info.sha, {name: Expected(size, (checksum,)) for name, (size, checksum) in sorted(identities.items())}


def fetch(kind: str, repository: str, name: str, commit: str, place: Path, policy: RetryPolicy) -> None:
    """Put one file of a repository in a place."""
    from huggingface_hub import hf_hub_download

    folder = place.with_name(f"{place.name}.folder")  # where the library keeps notes of its own
    what = f"{name} in {kind} {repository} at revision {commit}"
    options = {"repo_type": kind, "revision": commit, "local_dir": folder, "endpoint": _endpoint()}
    try:
        Path(_ask(lambda: hf_hub_download(repository, name, **options), what, policy)).replace(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _endpoint() -> str | None:
    # Read at each call: the library itself reads it only once, at its import.
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _ask(question: Callable[[], Answer], what: str, policy: RetryPolicy) -> Answer:
    import httpx
    from huggingface_hub import errors

    permanent = {
        errors.GatedRepoError: "its owner asks for consent first",  # a kind of RepositoryNotFoundError
        errors.RepositoryNotFoundError: "the hub knows no such repository (or it is private)",
        errors.RevisionNotFoundError: "the repository has no such revision",
        errors.EntryNotFoundError: "the repository has no such file at that revision",
        errors.OfflineModeIsEnabled: "HF_HUB_OFFLINE is set",
        errors.HFValidationError: "this is no name of a repository",
    }

    def action() -> Answer:
        try:
            return question()
        except errors.LocalEntryNotFoundError as error:  # what the library makes of a connection that fails
            raise TransientError(f"{what}: {error}") from error
        except tuple(permanent) as error:
            told = next(text for kind, text in permanent.items() if isinstance(error, kind))
            raise SourceError(f"{what}: {told}") from error
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status == 404:
                raise SourceError(f"{what}: the hub knows no such repository or revision (HTTP 404)") from error
            kind = TransientError if status >= 500 or status in (408, 429) else SourceError
            raise kind(f"{what}: HTTP {status} from the hub") from error
        except (httpx.HTTPError, OSError) as error:
            raise TransientError(f"{what}: {error or type(error).__name__}") from error

    return retry(action, what, policy)
