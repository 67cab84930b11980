"""The similarity indexes: every one declares itself here, in the order in which results list them.

To add one: a row here, and its formula in `similarity` (from second moments), `canonical` or `pairwise`. The command
line, the results, the figures' labels and the page read this list. It is light: whoever plans a run reads it too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """A similarity index.

    `family`: what computes it. `resampled`: it has a standard error by bootstrap over sentences. `length_control`: it
    is also measured with the length of sentences controlled for. `all_pairs`: its cost grows with the square of the
    number of sentences.
    """

    name: str
    label: str
    family: str
    resampled: bool = False
    length_control: bool = False
    all_pairs: bool = False


ALL = (
    Index("cka", "CKA", "cka", resampled=True, length_control=True),
    Index("cka-uncentred", "CKA, not centred", "cka"),
    Index("cka-rbf", "CKA, RBF kernel", "rbf", all_pairs=True),
    Index("cka-standardised", "CKA, neurons standardised", "standardised"),
    Index("anc", "ANC", "anc", resampled=True, length_control=True),
    Index("anc-signed", "ANC, signed", "anc", resampled=True),
    Index("cca", "CCA", "cca"),
    Index("cca-squared", "CCA, squared", "cca"),
    Index("cca-ecco", "CCA (authors' library)", "ecco"),
    Index("svcca", "SVCCA", "cca"),
    Index("pwcca", "PWCCA", "cca"),
    Index("pwcca-ecco", "PWCCA (authors' library)", "ecco"),
    Index("matching", "Matching accuracy", "matching", resampled=True, all_pairs=True),
    Index("matching-standardised", "Matching, neurons standardised", "matching", resampled=True, all_pairs=True),
    # No similarity, but why one may mislead: the share of the variance that so many neurons hold.
    Index("variance-1", "Variance of the largest neuron", "variance"),
    Index("variance-5", "Variance of the 5 largest neurons", "variance"),
    Index("variance-20", "Variance of the 20 largest neurons", "variance"),
)


def of(*families: str) -> tuple[str, ...]:
    """The names of the indexes of some families."""
    return tuple(index.name for index in ALL if index.family in families)


INDEXES = tuple(index.name for index in ALL)
LABELS = {index.name: index.label for index in ALL}
CKA, ANC, CCA, ECCO = of("cka"), of("anc"), of("cca", "ecco"), of("ecco")
STANDARDISED, VARIANCE = of("standardised"), of("variance")
CONTROLLED = tuple(index.name for index in ALL if index.length_control)
PAIRWISE = tuple(index.name for index in ALL if index.all_pairs)
