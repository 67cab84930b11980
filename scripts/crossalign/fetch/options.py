"""The options that all download programs share."""

import argparse
from pathlib import Path

from crossalign.fetch.mirror import Mirror
from crossalign.fetch.sources import Settings
from crossalign.fetch.web import Patience
from crossalign.runtime.errors import UserError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add where downloads go and how they are made."""
    usual = Patience()
    parser.add_argument("--downloads", type=Path, required=True, help="the folder where downloads go")
    parser.add_argument("--lock", type=Path, required=True, help="record of files without a published checksum")
    parser.add_argument("--base-mirror", default="", help="mirror of everything: https://…, file:///…, file:<folder>")
    parser.add_argument(
        "--base-mirror-checksums", action="store_true", help="its SHA256SUMS is the law, and it is the only source"
    )
    parser.add_argument("--attempts", type=int, default=usual.attempts, help="in a row without progress (%(default)s)")
    parser.add_argument("--timeout", type=float, default=usual.timeout, help="seconds of silence (%(default)g)")
    parser.add_argument("--wait", type=float, default=usual.first_wait, help="first wait in seconds, then doubled")
    parser.add_argument("--offline", action="store_true", help="touch no network; file: mirrors still work")


def settings(args: argparse.Namespace) -> Settings:
    """Turn the options into settings."""
    if args.attempts < 1 or args.timeout <= 0 or args.wait < 0:
        raise UserError("--attempts must be at least 1, --timeout above 0 and --wait not negative")
    if args.base_mirror_checksums and not args.base_mirror:
        raise UserError("--base-mirror-checksums needs --base-mirror")
    return Settings(
        downloads=args.downloads,
        lock=args.lock,
        mirror=Mirror(args.base_mirror, args.base_mirror_checksums) if args.base_mirror else None,
        offline=args.offline,
        patience=Patience(attempts=args.attempts, timeout=args.timeout, first_wait=args.wait),
    )
