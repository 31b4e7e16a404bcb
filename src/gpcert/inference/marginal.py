"""The log marginal likelihood of a kernel and its gradient in the logs of the kernel's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpcert.inference.approximation import Approximated, Fit
from gpcert.kernels import Gram, Kernel
from gpcert.likelihoods import BinaryLikelihood, Softmax
from gpcert.validation import Float


@dataclass(frozen=True)
class Evaluated:
    """One kernel, its posterior approximation, and what the approximation says about the kernel."""

    kernel: Kernel
    gram: Gram
    approximation: Approximated

    @property
    def value(self) -> float:
        """log p(y | X, theta), approximated."""
        return self.approximation.log_marginal_likelihood

    @cached_property
    def gradient(self) -> Float:
        """d value / d theta (p,)."""
        return self.gram.contract(self.approximation.gradient_matrix(self.gram.matrix))


def marginal_likelihood(
    X: Float, y: Float, kernel: Kernel, likelihood: BinaryLikelihood | Softmax, fit: Fit
) -> Callable[[Kernel], Evaluated]:
    """The function kernel -> Evaluated for points X (n, d), labels y (n,) as `fit` takes them.

    Kernels must be like `kernel`. It remembers the unscaled distances of X, and the sites of its last
    evaluation as the next one's start: in a sequence of similar kernels this saves about half the time.
    """
    gram = kernel.gram_builder(X)
    sites: Any = None

    def evaluate(kernel: Kernel) -> Evaluated:
        nonlocal sites
        prior = gram(kernel)
        approximation = fit(prior.matrix, y, likelihood, sites)
        sites = approximation.sites
        return Evaluated(kernel, prior, approximation)

    return evaluate
