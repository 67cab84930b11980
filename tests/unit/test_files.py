"""Files that appear whole or not at all, while others write the same ones."""

import tempfile

from crossalign.runtime.files import sweep, write_atomic


def test_what_a_living_process_writes_is_never_swept(tmp_path, monkeypatch):
    """Not even between the making of its temporary file and the lock on it; what a dead one left goes."""
    path, make, swept = tmp_path / "file", tempfile.mkstemp, []

    def swept_at_once(**where):
        made = make(**where)
        if not swept:
            sweep(path)
            swept.append(list(tmp_path.iterdir()))
        return made

    (tmp_path / ".file.dead.part").write_text("half")
    monkeypatch.setattr(tempfile, "mkstemp", swept_at_once)
    with write_atomic(path) as stream:
        stream.write("whole")
        stream.flush()
        sweep(path)
        assert len(list(tmp_path.iterdir())) == 1
    assert swept == [[]] and path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]
