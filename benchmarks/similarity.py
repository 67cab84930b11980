"""Similarity indexes: ours against the straightforward way, side by side.

The straightforward way takes each pair and layer by itself: CKA and sentence matching through n x n matrices, the CCA
family through singular value decompositions of both matrices (shared by the whole family, which favours it), all in
float64 and on the same device. CKA is there twice: kernels centred by taking means away, and by products with the
centring matrix, as the CKA functions that public repositories copy from each other do (those centre every kernel three
times; here once). It is measured on a few pairs and multiplied; the table says on how many. Ours runs whole.
Both start from float32 arrays in the memory of the host, so both pay for the copy to a GPU, unless --resident.

Usage: python benchmarks/similarity.py [--quick] [--device cpu|cuda] [--sentences N --neurons N --layers N --pairs N]
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.linalg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from crossalign.analysis.backends import TorchBackend, choose_backend
from crossalign.analysis.similarity import ANC, CCA, INDEXES, Options, compare

# A second way to do what another row does already; not part of the sum.
SECOND = "CKA, centring matrix"
GROUPS = {
    "CKA": ("cka",),
    SECOND: ("cka",),
    "CCA family": CCA,
    "ANC": ANC,
    "matching": ("matching",),
    "CKA, RBF": ("cka-rbf",),
}


def sentences(rng: np.random.Generator, count: int, neurons: int, languages: int, decay: float) -> list[np.ndarray]:
    """Made-up embeddings of one layer: shared meaning, a part of each language's own, uneven neurons, a mean.

    The standard deviation in the k-th direction is k^-decay.
    """
    scale = np.exp(rng.normal(0.0, 0.7, neurons)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((neurons, neurons)))[0]
    mixing = (rotation / np.arange(1, neurons + 1) ** decay).astype(np.float32)
    shared = rng.standard_normal((count, neurons), dtype=np.float32)
    offset = rng.normal(0.0, 1.0, neurons).astype(np.float32)
    return [
        ((shared + rng.standard_normal((count, neurons), dtype=np.float32)) @ mixing.T + offset) * scale
        for _ in range(languages)
    ]


class Peer:
    """The straightforward way, on numpy arrays or PyTorch tensors."""

    def __init__(self, device: str) -> None:
        self.torch = None
        if device != "cpu":
            import torch

            self.torch = torch
        self.xp = self.torch or np
        self.device = device

    def pair(self, x: np.ndarray, y: np.ndarray) -> list:
        if self.torch is None:
            return [x.astype(np.float64), y.astype(np.float64)]
        return [self.load(array).double() for array in (x, y)]

    def load(self, array: np.ndarray):
        return self.torch.from_numpy(array).to(self.device)

    def run(self, group: str, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
        ways: dict[str, Callable] = {
            "CKA": self.cka,
            SECOND: self.cka_by_matrix,
            "CCA family": self.cca,
            "ANC": self.anc,
            "matching": self.matching,
            "CKA, RBF": self.rbf,
        }
        return ways[group](*self.pair(x, y))

    def aligned(self, left, right) -> float:
        for gram in (left, right):
            means = gram.mean(0)
            means -= means.mean() / 2
            gram -= means[:, None]
            gram -= means[None, :]
        left, right = left.reshape(-1), right.reshape(-1)
        return float((left @ right) / (self.xp.linalg.norm(left) * self.xp.linalg.norm(right)))

    def cka(self, x, y) -> dict[str, float]:
        return {"cka": self.aligned(x @ x.T, y @ y.T)}

    def cka_by_matrix(self, x, y) -> dict[str, float]:
        count = len(x)
        hat = self.xp.eye(count, dtype=x.dtype, **({"device": self.device} if self.torch else {})) - 1.0 / count
        left, right = (hat @ (matrix @ matrix.T) @ hat for matrix in (x, y))
        norms = self.xp.sqrt((left * left).sum() * (right * right).sum())
        return {"cka": float((left * right).sum() / norms)}

    def rbf(self, x, y) -> dict[str, float]:
        kernels = []
        for matrix in (x, y):
            products = matrix @ matrix.T
            lengths = self.xp.diagonal(products)
            distances = lengths[:, None] + lengths[None, :] - 2 * products
            # PyTorch's median is the lower of the two in the middle, so the quantities are compared to fewer digits.
            middle = float(self.xp.median(distances[distances != 0]))
            kernels.append(self.xp.exp(distances * (-0.5 / middle)))
        return {"cka-rbf": self.aligned(*kernels)}

    def anc(self, x, y) -> dict[str, float]:
        x, y = x - x.mean(0), y - y.mean(0)
        values = (x * y).sum(0) / self.xp.sqrt((x * x).sum(0) * (y * y).sum(0))
        return {"anc": float(self.xp.abs(values).mean()), "anc-signed": float(values.mean())}

    def matching(self, x, y) -> dict[str, float]:
        x, y = (matrix / self.xp.sqrt((matrix * matrix).sum(1))[:, None] for matrix in (x, y))
        best = (x @ y.T).argmax(1)
        place = np.arange(len(x)) if self.torch is None else self.torch.arange(len(x), device=self.device)
        return {"matching": float((best == place).sum()) / len(x)}

    def svd(self, matrix):
        if self.torch is None:
            return scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
        return self.torch.linalg.svd(matrix, full_matrices=False)

    def cca(self, x, y) -> dict[str, float]:
        x, y = x - x.mean(0), y - y.mean(0)
        (left, *_), (right, *_) = self.svd(x), self.svd(y)
        directions, rho, _ = self.svd(left.T @ right)
        weights = self.xp.abs((left @ directions).T @ x).sum(1)
        top = self.svd(left[:, :20].T @ right[:, :20])[1]
        return {
            "cca": float(rho.mean()),
            "cca-squared": float((rho**2).mean()),
            "svcca": float(top.mean()),
            "pwcca": float((weights * rho).sum() / weights.sum()),
        }


def keep_on_device(backend: TorchBackend, peer: Peer, arrays: list[np.ndarray]) -> None:
    """Copy the arrays once, before any clock runs, and hand out the copies."""
    copies = {id(array): TorchBackend.load(backend, array) for array in arrays}
    backend.load = lambda array: copies[id(array)] if id(array) in copies else TorchBackend.load(backend, array)
    peer.load = backend.load


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--neurons", type=int, default=768)
    parser.add_argument("--layers", type=int, default=13)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--peer-pairs", type=int, default=2, help="pairs that the straightforward way is measured on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--quick", action="store_true", help="one layer, four pairs, one straightforward pair")
    parser.add_argument(
        "--cpu-time", action="store_true", help="seconds of the processor, for one thread on a busy machine"
    )
    parser.add_argument("--decay", type=float, default=0.7, help="from about 1.2 on, CCA orthogonalises twice")
    parser.add_argument("--resident", action="store_true", help="arrays are on the GPU before the clock starts")
    args = parser.parse_args()
    if args.resident and not args.device.startswith("cuda"):
        sys.exit("error: --resident is for --device cuda")
    clock = time.process_time if args.cpu_time else time.perf_counter
    if args.quick:
        args.layers, args.pairs, args.peer_pairs = 1, 4, 1
        args.groups = [group for group in args.groups if group != SECOND]
    backend, peer = choose_backend(args.device), Peer(args.device)
    rng = np.random.default_rng(1)
    ours, theirs = (dict.fromkeys(args.groups, 0.0) for _ in range(2))
    differences = dict.fromkeys(args.groups, 0.0)
    together = 0.0
    everything = tuple(name for name in INDEXES if any(name in GROUPS[group] for group in args.groups))
    for layer in range(args.layers):
        reference, *others = sentences(rng, args.sentences, args.neurons, args.pairs + 1, args.decay)
        if args.resident:
            keep_on_device(backend, peer, [reference, *others])
        if layer == 0:
            # What a library sets up at its first call belongs to neither side.
            small = [matrix[: None if args.device.startswith("cuda") else 2000] for matrix in (reference, others[0])]
            compare(small[0], small[1:], Options(everything), backend)
            for group in args.groups:
                peer.run(group, *small)
        for group in args.groups:
            start = clock()
            found = compare(reference, others, Options(GROUPS[group]), backend)
            ours[group] += clock() - start
            if layer == 0:
                for place in range(args.peer_pairs):
                    start = clock()
                    values = peer.run(group, reference, others[place])
                    theirs[group] += clock() - start
                    for name, value in values.items():
                        differences[group] = max(differences[group], abs(value - found[place].values[name]))
        start = clock()
        compare(reference, others, Options(everything), backend)
        together += clock() - start
    cells = args.layers * args.pairs
    size = f"{args.sentences} sentences x {args.neurons} neurons, {args.layers} layers x {args.pairs} pairs"
    where = f"{args.device}, resident" if args.resident else args.device
    print(f"\n{size}, {where}, {'processor time' if args.cpu_time else 'wall clock'}\n")
    print(
        f"| index | ours, s | straightforward, s ({args.peer_pairs} of {cells} measured) | times | largest difference |"
    )
    print("|---|---|---|---|---|")
    for group in args.groups:
        slow = theirs[group] * cells / args.peer_pairs
        print(f"| {group} | {ours[group]:.2f} | {slow:.1f} | {slow / ours[group]:.1f} | {differences[group]:.0e} |")
    slow = sum(theirs[group] for group in args.groups if group != SECOND) * cells / args.peer_pairs
    print(f"| all in one job | {together:.2f} | {slow:.1f} | {slow / together:.1f} | |")


if __name__ == "__main__":
    main()
