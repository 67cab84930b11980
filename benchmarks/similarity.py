"""Similarity indexes: ours against the straightforward published way, side by side.

The published way takes each pair and layer by itself, in float64 and on the same device, and shares nothing between
pairs. Linear CKA is the function that public repositories copy from each other: the n x n kernels X X^T and Y Y^T, each
centred by products with the centring matrix, and three such HSICs (of X with Y, X with X, Y with Y). Sentence matching
goes through the n x n matrix of cosines; the CCA family through singular value decompositions.

The published way is measured on one pair and multiplied. Ours runs whole. Both start from float32 arrays in the memory
of the host, so both pay for the copy to a GPU.

Usage: python benchmarks/similarity.py [--device cpu|cuda] [--sentences N --neurons N --pairs N]
"""

import time

import numpy as np
import torch
from common import new_parser, print_row, print_table

from crossalign.analysis.indexes import ANC
from crossalign.analysis.similarity import Options, compare


def hsic(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    hat = torch.eye(len(left)).to(left) - 1.0 / len(left)
    return ((hat @ (left @ left.T) @ hat) * (hat @ (right @ right.T) @ hat)).sum()


def cka(x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    return {"cka": float(hsic(x, y) / (hsic(x, x) * hsic(y, y)).sqrt())}


def anc(x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    x, y = x - x.mean(0), y - y.mean(0)
    values = (x * y).sum(0) / ((x * x).sum(0) * (y * y).sum(0)).sqrt()
    return {"anc": float(values.abs().mean()), "anc-signed": float(values.mean())}


def matching(x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    x, y = (matrix / matrix.norm(dim=1, keepdim=True) for matrix in (x, y))
    return {"matching": float(((x @ y.T).argmax(1).cpu() == torch.arange(len(x))).double().mean())}


def cca(x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    left, right = (torch.linalg.svd(matrix - matrix.mean(0), full_matrices=False)[0] for matrix in (x, y))
    rho = torch.linalg.svdvals(left.T @ right)
    top = torch.linalg.svdvals(left[:, :20].T @ right[:, :20])
    return {"cca": float(rho.mean()), "cca-squared": float((rho**2).mean()), "svcca": float(top.mean())}


GROUPS = {
    "CKA": (("cka",), cka),
    "CCA family": (("cca", "cca-squared", "svcca"), cca),
    "ANC": (ANC, anc),
    "matching": (("matching",), matching),
}


def main() -> None:
    """Measure and print a Markdown table."""
    parser = new_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--neurons", type=int, default=768)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    shape = (args.sentences, args.neurons)
    shared, scale = rng.standard_normal(shape), np.exp(rng.normal(0.0, 0.7, args.neurons))
    arrays = [((shared + rng.standard_normal(shape)) * scale).astype(np.float32) for _ in range(args.pairs + 1)]
    print(f"{args.sentences} sentences x {args.neurons} neurons, {args.pairs} pairs, {args.device}\n")
    print_table(["index", "ours, s", "published way, s (1 pair measured)", "times", "largest difference"])
    for name, (indexes, published) in GROUPS.items():
        for few in (200, args.sentences):  # what a library sets up at its first call belongs to neither side
            start = time.perf_counter()
            found = compare(arrays[0][:few], [each[:few] for each in arrays[1:]], Options(indexes), args.device)
            ours = time.perf_counter() - start
            start = time.perf_counter()
            values = published(*(torch.from_numpy(each[:few]).to(args.device, torch.float64) for each in arrays[:2]))
            theirs = (time.perf_counter() - start) * args.pairs
        worst = max(abs(value - found[0].values[index]) for index, value in values.items())
        print_row([name, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}", f"{worst:.0e}"])


if __name__ == "__main__":
    main()
