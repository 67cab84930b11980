"""What findings say of similarity over layers."""

import pandas as pd

# The numbering of layers begins with the embeddings, layer 0.


def peak(similarity: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Whether curves have their peak in the middle: `rise` and `fall` are its height above the first and last layers.

    The peak is the highest layer between the second and the last but two, of the mean over seeds; `layer` says which.
    One row per seed and curve, which the columns `by` name.
    """
    tables = []
    for key, curve in similarity.groupby(by, sort=False):
        layers = curve.pivot_table(index="seed", columns="layer", values="value")
        middle = layers.loc[:, 2 : layers.columns.max() - 2]
        if middle.empty:
            continue
        top = middle.mean().idxmax()
        found = pd.DataFrame({"rise": layers[top] - layers.iloc[:, 0], "fall": layers[top] - layers.iloc[:, -1]})
        found["layer"] = float(top)
        tables.append(pd.concat({key: found}, names=by).reorder_levels(["seed", *by]))
    columns = pd.DataFrame(columns=["rise", "fall", "layer"], dtype=float)
    empty = columns.set_index(pd.MultiIndex.from_arrays([[] for _ in ("seed", *by)], names=["seed", *by]))
    return pd.concat(tables) if tables else empty


def level(similarity: pd.DataFrame, first: int, last: int, by: list[str]) -> pd.Series:
    """The mean similarity over some layers of every seed and curve."""
    return similarity[similarity["layer"].between(first, last)].groupby(["seed", *by], sort=False)["value"].mean()
