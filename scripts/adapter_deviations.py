"""Rows of the table of docs/adapters.md: the deviation each adapter records for the models of its tests.

    python scripts/adapter_deviations.py sklearn | gpy | gpytorch | gpflow

Run with the library's own environment (`python scripts/environments.py adapters` sets them up).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import gpcert as gc

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path += [str(TESTS), str(TESTS / "adapters"), str(TESTS / "foreign")]

Row = tuple[str, gc.Posterior]


def sklearn() -> Iterator[Row]:
    """The models of tests/adapters/test_sklearn_adapter.py."""
    import test_sklearn_adapter as t

    names = ("StandardScaler, RBF", "MinMaxScaler, RBF, ARD", "RobustScaler, RBF, 3 classes")
    names += ("StandardScaler, Matern + RBF", "StandardScaler, rational quadratic")
    for name, model in zip(names, t.models(t.data.__wrapped__()), strict=True):
        yield f"{name}", gc.from_sklearn(model)
        yield f"{name}, exact", gc.from_sklearn(model, target="exact")


def gpy() -> Iterator[Row]:
    """The models of tests/adapters/test_gpy_adapter.py."""
    import test_gpy_adapter as t

    for kind in ("ep", "laplace", "sparse", "svgp"):
        yield f"{kind}, RBF", gc.from_gpy(t.build(kind, t.data.__wrapped__(), t.kernels()["rbf"]))


def gpytorch() -> Iterator[Row]:
    """The models of tests/foreign/test_gpytorch.py."""
    import test_gpytorch as t
    import torch

    for dtype in (torch.float64, torch.float32):
        for strategy in (t.VariationalStrategy, t.UnwhitenedVariationalStrategy):
            model = t.trained(t.Classifier(strategy, dtype=dtype))
            yield f"{strategy.__name__}, {str(dtype)[6:]}", gc.from_gpytorch(model)
    labels = np.digitize(t.X[:, 0], [-0.4, 0.5])
    likelihood = t.SoftmaxLikelihood(num_classes=3, mixing_weights=False)
    for dtype in (torch.float64, torch.float32):
        model = t.trained(t.Classifier(classes=3, dtype=dtype), likelihood, labels)
        yield f"softmax, 3 kernels, {str(dtype)[6:]}", gc.from_gpytorch(model, likelihood)


def gpflow() -> Iterator[Row]:
    """The models of tests/foreign/test_gpflow.py."""
    import test_gpflow as t

    for kind, make in t.MODELS.items():
        yield f"{kind}, RBF", gc.from_gpflow(t.trained(make(t.KERNELS["rbf"]())))
    sigmoid = t.Bernoulli(invlink=t.tf.sigmoid)
    model = t.trained(t.SVGP(t.KERNELS["rbf"](), sigmoid, t.X[:15].copy()))
    yield "svgp, sigmoid, exact", gc.from_gpflow(model, target="exact")
    labels = np.digitize(t.X[:, :1], [-0.4, 0.5])
    model = t.SVGP(t.k.SquaredExponential(), t.Softmax(3), t.X[:15].copy(), num_latent_gps=3, whiten=False)
    yield "unwhitened, softmax", gc.from_gpflow(t.trained(model, labels, steps=15))


def main() -> None:
    """One Markdown row per model."""
    library = sys.argv[1]
    for name, post in globals()[library]():
        found = post.training["deviation"]
        keys = ("mean", "variance", "probability")
        shown = " | ".join(f"{found[key]:.0e}" if key in found else "sampled" for key in keys)
        blocks = post.precision if post.precision.ndim == 3 else post.precision[None]
        eigenvalues = np.concatenate([np.linalg.eigvalsh(block) for block in blocks])
        negative = int((eigenvalues < -1e-9 * eigenvalues.max()).sum())
        version = f"{post.training['library']} {post.training['version']}"
        print(f"| {version} | {name} | {shown} | {negative} of {eigenvalues.size} |")


if __name__ == "__main__":
    main()
