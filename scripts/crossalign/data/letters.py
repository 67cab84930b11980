"""Tables of letters in a form that can be read and proof-read: each letter followed by its Latin spelling."""


def letter_table(pairs: str) -> dict[str, str]:
    """The table written as `ж zh ш sh`."""
    signs = pairs.split()
    letters, latin = signs[::2], signs[1::2]
    if len(set(letters)) != len(letters):
        raise ValueError(f"a letter comes twice in {pairs!r}")
    return dict(zip(letters, latin, strict=True))
