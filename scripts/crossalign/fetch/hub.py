"""Ask the model hub what a repository holds at a revision, and where its files are.

The library huggingface_hub answers the questions; the bytes go through our own transfer, because the library (1.33)
throws an unfinished file away when its process ends, and because it never needs its global cache that way.
HF_ENDPOINT names another hub, and the library's usual ways of giving a token work.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from crossalign.fetch.checksums import Expected
from crossalign.fetch.retry import RetryPolicy, SourceError, TransientError, retry

Answer = TypeVar("Answer")
# Without this the library fetches and stores a registry of its own to describe us to the hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


@dataclass(frozen=True)
class RemoteFile:
    """A file somewhere: where it is and what it must be."""

    name: str
    url: str
    expected: Expected


def is_commit(revision: str) -> bool:
    """Whether a revision can never move."""
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None


def repository_file(kind: str, repository: str, name: str, revision: str, policy: RetryPolicy) -> RemoteFile:
    """Look up one file of a `dataset` or `model` repository at a revision."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(repository, name, repo_type=kind, revision=revision, endpoint=_endpoint())
    what = f"{name} in {kind} {repository} at revision {revision}"
    metadata = _ask(lambda: get_hf_file_metadata(url, timeout=policy.timeout), what, policy)
    if metadata.commit_hash:
        # The commit from here on, so that a moving branch cannot change between two pieces of the file.
        url = hf_hub_url(repository, name, repo_type=kind, revision=metadata.commit_hash, endpoint=_endpoint())
    return RemoteFile(name, url, _expected(metadata.size, metadata.etag))


def repository_files(kind: str, repository: str, revision: str, policy: RetryPolicy) -> tuple[str, list[RemoteFile]]:
    """The commit that a revision of a `dataset` or `model` repository is now, and all its files sorted by name."""
    from huggingface_hub import HfApi, hf_hub_url

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
    files = [
        RemoteFile(
            file.rfilename,
            hf_hub_url(repository, file.rfilename, repo_type=kind, revision=info.sha, endpoint=_endpoint()),
            _expected(file.size, file.lfs.sha256 if file.lfs else file.blob_id),
        )
        for file in info.siblings
    ]
    return info.sha, sorted(files, key=lambda file: file.name)


def authorisation() -> dict[str, str]:
    """The header that carries the user's token, if there is one. Only for addresses on the hub itself."""
    from huggingface_hub.utils import build_hf_headers

    headers = build_hf_headers()
    return {"Authorization": headers["authorization"]} if "authorization" in headers else {}


def _endpoint() -> str | None:
    # Read at each call: the library itself reads it only once, at its import.
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _expected(length: int | None, identity: str | None) -> Expected:
    """The hub identifies large files by sha256 and the others by git blob id."""
    kinds = {64: "sha256", 40: "git"}
    identity = (identity or "").strip('"').removeprefix("W/").strip('"').lower()
    if re.fullmatch(r"[0-9a-f]+", identity) and len(identity) in kinds:
        return Expected(length, (f"{kinds[len(identity)]}:{identity}",))
    return Expected(length)


def _ask(question: Callable[[], Answer], what: str, policy: RetryPolicy) -> Answer:
    import httpx
    from huggingface_hub import errors

    permanent = {
        errors.RepositoryNotFoundError: "the hub knows no such repository (or it is private)",
        errors.RevisionNotFoundError: "the repository has no such revision",
        errors.EntryNotFoundError: "the repository has no such file at that revision",
    }

    def action() -> Answer:
        try:
            return question()
        except errors.GatedRepoError as error:  # a kind of RepositoryNotFoundError
            raise SourceError(f"{what}: its owner asks for consent first: {error}") from error
        except tuple(permanent) as error:
            told = next(text for kind, text in permanent.items() if isinstance(error, kind))
            raise SourceError(f"{what}: {told}") from error
        except errors.OfflineModeIsEnabled as error:
            raise SourceError(f"{what}: HF_HUB_OFFLINE is set") from error
        except errors.HFValidationError as error:
            raise SourceError(f"{what}: {error}") from error
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status == 404:
                raise SourceError(f"{what}: the hub knows no such repository or revision (HTTP 404)") from error
            kind = TransientError if status >= 500 or status in (408, 429) else SourceError
            raise kind(f"{what}: HTTP {status} from the hub") from error
        except httpx.HTTPError as error:
            raise TransientError(f"{what}: {error or type(error).__name__}") from error

    return retry(action, what, policy)
