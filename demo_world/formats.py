"""Containers whose bytes depend on the content alone: no times, no names, and no compression.

Compressors differ between versions and platforms, stored blocks do not; the demo's files are small enough.
"""

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable


def gzip_stored(data: bytes) -> bytes:
    """A gzip file of stored blocks."""
    out = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"]
    blocks = [data[i : i + 65535] for i in range(0, len(data), 65535)] or [b""]
    for number, block in enumerate(blocks):
        out.append(struct.pack("<BHH", number == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block)
    out.append(struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF))
    return b"".join(out)


def _vli(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def xz_stored(data: bytes) -> bytes:
    """An xz file with one block of uncompressed LZMA2 chunks (section numbers: the .xz file format, 2 to 4)."""
    flags = b"\x00\x01"  # 2.1.1.2: check is CRC32
    out = [b"\xfd7zXZ\x00" + flags + struct.pack("<I", zlib.crc32(flags))]
    if data:
        # 3.1: header of 12 bytes, one filter (LZMA2, dictionary 64 KiB), padding.
        header = b"\x02\x00\x21\x01\x08\x00\x00\x00"
        header += struct.pack("<I", zlib.crc32(header))
        chunks = []
        for start in range(0, len(data), 65536):
            chunk = data[start : start + 65536]
            chunks.append((b"\x01" if start == 0 else b"\x02") + struct.pack(">H", len(chunk) - 1) + chunk)
        body = b"".join(chunks) + b"\x00"
        check = struct.pack("<I", zlib.crc32(data))
        out += [header, body, b"\x00" * (-len(body) % 4), check]
        index = b"\x00\x01" + _vli(len(header) + len(body) + len(check)) + _vli(len(data))
    else:
        index = b"\x00\x00"
    index += b"\x00" * (-len(index) % 4)
    index += struct.pack("<I", zlib.crc32(index))
    footer = struct.pack("<I", len(index) // 4 - 1) + flags
    return b"".join([*out, index, struct.pack("<I", zlib.crc32(footer)), footer, b"YZ"])


def zip_stored(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip archive of stored members dated 1 January 1980."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)
    return stream.getvalue()


def tar_gz_stored(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A tar.gz archive without owners or times."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return gzip_stored(stream.getvalue())


def parquet(columns: dict[str, list[str]]) -> bytes:
    """A parquet file of text columns. Its bytes carry the version of pyarrow, which the requirements pin."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({name: pyarrow.array(values, pyarrow.string()) for name, values in columns.items()})
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream, compression="none", store_schema=False, version="2.6")
    return stream.getvalue()
