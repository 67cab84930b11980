"""Similarity indexes: ours against the straightforward published way, side by side.

The published way takes each pair and layer by itself, in float64 and on the same device, and shares nothing between
pairs. Linear CKA is the function that public repositories copy from each other: the n x n kernels X X^T and Y Y^T, each
centred by products with the centring matrix, H K H, and three such HSICs (of X with Y, X with X, Y with Y), so that
every kernel is made and centred three times. The kernel CKA of `align-predict` is the same function with a Gaussian
kernel. Sentence matching goes through the n x n matrix of cosines; the CCA family through singular value decompositions
of both matrices, here shared by the whole family, which favours it.

Further rows give the published way what a careful author would add: kernels made and centred once, and centred by
taking means away instead of products with H. They are not part of the sum.

The published way is measured on a few pairs and multiplied; the table says on how many. Ours runs whole. Both start
from float32 arrays in the memory of the host, so both pay for the copy to a GPU.

Usage: python benchmarks/similarity.py [--quick] [--device cpu|cuda] [--sentences N --neurons N --layers N --pairs N]
On a CPU with 10,000 sentences one pair of published CKA takes some ten minutes and 5 GB; --groups leaves rows out, and
--quick takes 2,000 sentences.
"""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from common import new_parser, print_row, print_table

from crossalign.analysis.backends import Array, Backend, choose_backend
from crossalign.analysis.indexes import ANC, INDEXES
from crossalign.analysis.similarity import Options, compare

GROUPS = {
    "CKA": ("cka",),
    "CKA, kernels once": ("cka",),
    "CKA, means": ("cka",),
    "CCA family": ("cca", "cca-squared", "svcca", "pwcca"),
    "ANC": ANC,
    "matching": ("matching",),
    "CKA, RBF": ("cka-rbf",),
    "CKA, RBF, means": ("cka-rbf",),
}
# Better ways to do what another row does already; not part of the sum.
SECOND = ("CKA, kernels once", "CKA, means", "CKA, RBF, means")


def sentences(rng: np.random.Generator, count: int, neurons: int, languages: int, decay: float) -> list[np.ndarray]:
    """Made-up embeddings of one layer: shared meaning, a part of each language's own, uneven neurons, a mean.

    The standard deviation in the k-th direction is k^-decay.
    """
    scale = np.exp(rng.normal(0.0, 0.7, neurons)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((neurons, neurons)))[0]
    mixing = (rotation / np.arange(1, neurons + 1) ** decay).astype(np.float32)
    shared = rng.standard_normal((count, neurons), dtype=np.float32)
    offset = rng.normal(0.0, 1.0, neurons).astype(np.float32)

    def one(own: np.random.Generator) -> np.ndarray:
        return ((shared + own.standard_normal((count, neurons), dtype=np.float32)) @ mixing.T + offset) * scale

    # Drawing is most of the time, and runs beside other Python code.
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as threads:
        return list(threads.map(one, rng.spawn(languages)))


class Peer:
    """The published way, on numpy arrays or PyTorch tensors."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.xp = backend, backend.xp

    def load(self, array: np.ndarray) -> Array:
        return self.backend.double(self.backend.load(array))

    def run(self, group: str, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
        ways: dict[str, Callable] = {
            "CKA": lambda x, y: {"cka": self.published(x, y, self.linear)},
            "CKA, kernels once": lambda x, y: {"cka": self.kernels_once(x, y)},
            "CKA, means": lambda x, y: {"cka": self.aligned(self.linear(x), self.linear(y))},
            "CCA family": self.cca,
            "ANC": self.anc,
            "matching": self.matching,
            "CKA, RBF": lambda x, y: {"cka-rbf": self.published(x, y, self.gaussian)},
            "CKA, RBF, means": lambda x, y: {"cka-rbf": self.aligned(self.gaussian(x), self.gaussian(y))},
        }
        return ways[group](self.load(x), self.load(y))

    def linear(self, x):
        return x @ x.T

    def gaussian(self, x):
        products = x @ x.T
        lengths = self.xp.diagonal(products)
        distances = lengths[:, None] + lengths[None, :] - 2 * products
        # PyTorch's median is the lower of the two in the middle, so the quantities are compared to fewer digits.
        middle = float(self.xp.median(distances[distances != 0]))
        return self.xp.exp(distances * (-0.5 / middle))

    def centred(self, kernel):
        count = len(kernel)
        hat = self.load(np.eye(count) - 1.0 / count)
        return hat @ kernel @ hat

    def published(self, x, y, kernel: Callable) -> float:
        def hsic(left, right) -> float:
            return float((self.centred(kernel(left)) * self.centred(kernel(right))).sum())

        return hsic(x, y) / (hsic(x, x) * hsic(y, y)) ** 0.5

    def kernels_once(self, x, y) -> float:
        left, right = (self.centred(self.linear(matrix)) for matrix in (x, y))
        return float((left * right).sum() / self.xp.sqrt((left * left).sum() * (right * right).sum()))

    def aligned(self, left, right) -> float:
        for gram in (left, right):
            means = gram.mean(0)
            means -= means.mean() / 2
            gram -= means[:, None]
            gram -= means[None, :]
        left, right = left.reshape(-1), right.reshape(-1)
        return float((left @ right) / (self.xp.linalg.norm(left) * self.xp.linalg.norm(right)))

    def anc(self, x, y) -> dict[str, float]:
        x, y = x - x.mean(0), y - y.mean(0)
        values = (x * y).sum(0) / self.xp.sqrt((x * x).sum(0) * (y * y).sum(0))
        return {"anc": float(self.xp.abs(values).mean()), "anc-signed": float(values.mean())}

    def matching(self, x, y) -> dict[str, float]:
        x, y = (matrix / self.xp.sqrt((matrix * matrix).sum(1))[:, None] for matrix in (x, y))
        best = (x @ y.T).argmax(1)
        return {"matching": float((best == self.backend.load(np.arange(len(x)))).sum()) / len(x)}

    def svd(self, matrix):
        return self.xp.linalg.svd(matrix, full_matrices=False)

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


def main() -> None:
    """Measure and print a Markdown table."""
    parser = new_parser(__doc__)
    parser.add_argument("--sentences", type=int, help="default: 10000; with --quick 2000")
    parser.add_argument("--neurons", type=int, default=768)
    parser.add_argument("--layers", type=int, default=13)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--peer-pairs", type=int, default=2, help="pairs that the published way is measured on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--quick", action="store_true", help="one layer, four pairs, one published pair")
    parser.add_argument(
        "--cpu-time", action="store_true", help="seconds of the processor, for one thread on a busy machine"
    )
    parser.add_argument("--decay", type=float, default=0.7, help="from about 1.2 on, CCA orthogonalises twice")
    args = parser.parse_args()
    clock = time.process_time if args.cpu_time else time.perf_counter
    if args.quick:
        args.layers, args.pairs, args.peer_pairs = 1, 4, 1
    args.sentences = args.sentences or (2000 if args.quick else 10_000)
    backend = choose_backend(args.device)
    peer = Peer(backend)
    rng = np.random.default_rng(1)
    ours, theirs = (dict.fromkeys(args.groups, 0.0) for _ in range(2))
    differences = dict.fromkeys(args.groups, 0.0)
    together = 0.0
    everything = tuple(name for name in INDEXES if any(name in GROUPS[group] for group in args.groups))
    begun = time.monotonic()
    for layer in range(args.layers):
        reference, *others = sentences(rng, args.sentences, args.neurons, args.pairs + 1, args.decay)
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
        print(f"[{time.monotonic() - begun:.0f} s] layer {layer}", file=sys.stderr)
    cells = args.layers * args.pairs
    size = f"{args.sentences} sentences x {args.neurons} neurons, {args.layers} layers x {args.pairs} pairs"
    print(f"\n{size}, {args.device}, {'processor time' if args.cpu_time else 'wall clock'}\n")
    published = f"published way, s ({args.peer_pairs} of {cells} measured)"
    print_table(["index", "ours, s", published, "times", "largest difference"])
    for group in args.groups:
        slow = theirs[group] * cells / args.peer_pairs
        times = slow / ours[group]
        print_row([group, f"{ours[group]:.2f}", f"{slow:.1f}", f"{times:.1f}", f"{differences[group]:.0e}"])
    slow = sum(theirs[group] for group in args.groups if group not in SECOND) * cells / args.peer_pairs
    print_row(["all in one job", f"{together:.2f}", f"{slow:.1f}", f"{slow / together:.1f}", ""])


if __name__ == "__main__":
    main()
