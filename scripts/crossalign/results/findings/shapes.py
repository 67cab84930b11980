"""What findings say of similarity over layers."""

import numpy as np
import pandas as pd

# The numbering of layers begins with the embeddings, layer 0.


def peak(similarity: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Whether curves have their peak in the middle: `rise` and `fall` are its height above the first and last layers.

    The peak is the highest layer between the second and the last but two, of the mean over seeds; `layer` says which.
    One row per seed and curve, which the columns `by` name.
    """
    found = similarity.pivot_table(index=["seed", *by], columns="layer", values="value")
    found = found.reindex(columns=range(max(similarity["layer"], default=0) + 1))
    values, means = found.to_numpy(), found.groupby(level=by).transform("mean").to_numpy()
    known, rows, layers = ~np.isnan(means), np.arange(len(found)), np.arange(found.shape[1])
    first, last = known.argmax(axis=1), layers[-1] - known[:, ::-1].argmax(axis=1)
    middle = known & (layers >= 2) & (layers <= last[:, None] - 2)
    top = np.where(middle, means, -np.inf).argmax(axis=1)
    height = values[rows, top]
    shape = {"rise": height - values[rows, first], "fall": height - values[rows, last], "layer": top}
    return pd.DataFrame(shape, index=found.index)[middle.any(axis=1)]


def level(similarity: pd.DataFrame, first: int, last: int, by: list[str]) -> pd.Series:
    """The mean similarity over some layers of every seed and curve."""
    return similarity[similarity["layer"].between(first, last)].groupby(["seed", *by], sort=False)["value"].mean()
