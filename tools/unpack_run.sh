#!/usr/bin/env bash
# Unpacks what tools/pack_run.py has packed: bash unpack.sh FOLDER. Needs Python @PYTHON@ on @MACHINE@ and no network.
# Parts may come one at a time: each call keeps those that lie beside this file and names those that are missing.
# PYTHON=/path/to/python3 chooses the Python whose packages are used; packed ones fill the gaps.
set -euo pipefail
to=${1:?usage: bash unpack.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

fail() {
    echo "error: $*" >&2
    exit 1
}

found=$("$python" -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.machine())')
[ "$found" = "@PYTHON@ @MACHINE@" ] ||
    fail "packed for Python @PYTHON@ on @MACHINE@, but $python is Python $found; name another: PYTHON=python@PYTHON@"

[ -f "$here/SHA256SUMS" ] || fail "SHA256SUMS is missing beside unpack.sh: it comes with every part"
mkdir -p "$to/.parts"
to=$(cd "$to" && pwd)
missing=
while read -r sum name; do
    kept=$to/.parts/$name
    if [ -f "$here/$name" ]; then cp "$here/$name" "$kept"; fi
    if [ ! -f "$kept" ]; then
        missing+=" $name"
    elif [ "$(sha256sum <"$kept" | cut -c 1-64)" != "$sum" ]; then
        rm "$kept"
        fail "$name is damaged or of another pack: copy it again"
    fi
done <"$here/SHA256SUMS"
[ -z "$missing" ] || fail "the others are kept, and missing are:$missing"

# Python reads xz where tar may not. A pack replaces the packages of an earlier one.
rm -rf "$to/.venv/packages"
while read -r _ name; do cat "$to/.parts/$name"; done <"$here/SHA256SUMS" | "$python" -c '
import sys, tarfile
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz") as archive:
    archive.extractall(sys.argv[1], **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
' "$to"
rm -r "$to/.parts"

# The machine's own packages come first: its torch was built for it, and must meet the numpy that it knows.
"$python" -m venv --without-pip "$to/.venv"
site=$("$to/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" - "$to/.venv/packages" >"$site/packed.pth" <<'END'
import pathlib, sys
for entry in sys.path:
    if pathlib.Path(entry).name in ("site-packages", "dist-packages"):
        print(f"import site; site.addsitedir({entry!r})")
print(sys.argv[1])
END
cat >"$to/.venv/bin/snakemake" <<'END'
#!/bin/sh
exec "$(dirname "$0")/python" -m snakemake "$@"
END
chmod +x "$to/.venv/bin/snakemake"
touch "$to/.venv/installed" # make has nothing to install

"$to/.venv/bin/python" - @NEEDED@ <<'END' || fail "unpacked into $to, but some packages do not load; install them for $python, or pack them, too"
import importlib, sys
failed = False
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:  # a package of another version may raise anything
        failed = True
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
sys.exit(failed)
END
echo "unpacked into $to: all packages load"
