"""The arrays that the engine computes with: numpy's, or torch's on a device.

Code of this package is written once, against what numpy and the array API standard have in common
(`array_api_compat` brings torch to it); what neither offers is here: conversions, special functions, and
which matrices of a batch are certainly positive semidefinite.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import lapack

from gpcert.errors import InvalidInputError
from gpcert.extras import extra
from gpcert.rounding import gamma, is_certainly_psd
from gpcert.validation import Float

#: An array of a backend: numpy's or torch's.
Array = Any

#: Rows below which a GPU does not pay: a pass over it is some thousand launches.
_WORTH_A_GPU = 2048
#: Regions bounded together on a GPU: launches cost the same for any number of rows, also those of the later
#: passes for a few of them.
_GPU_LOT = 262144
#: Bytes that the arrays of one chunk may take on the CPU, where a cache is faster than memory.
_CPU_BYTES = 64e6
#: Bytes of a chunk that is larger because it would have very few rows.
_MOST_BYTES = 1e9


class Backend:
    """numpy: the namespace `xp` and the few functions that it lacks.

    `lot`: regions bounded together, at most: enough for the products. Fixed, so that what is resumed has the
    bits of what was not disturbed: arrays of another size are summed in another order.
    """

    xp: Any = np
    name = "cpu"
    lot = 4096
    #: Whether n x n products per row (J11) cost less than the search, however large n is.
    forms = False
    #: Rows up to which a product with a matrix costs what reading the matrix costs.
    few = 24
    #: Doubles that products of all pairs of features may take; beyond, each row makes its own again, which
    #: takes up to half as long again.
    most_pairs: float = 2**24

    def array(self, values: Any) -> Array:
        """Doubles on this device; shared with `values` where they are there already."""
        return np.asarray(values, dtype=np.float64)

    def indices(self, values: Any) -> Array:
        """Whole numbers on this device."""
        return np.asarray(values, dtype=np.int64)

    def mask(self, values: Any) -> Array:
        """Truth values on this device."""
        return np.asarray(values, dtype=np.bool_)

    def numpy(self, values: Array) -> Any:
        """As a numpy array."""
        return np.asarray(values)

    def store(self, values: Array, into: Float) -> None:
        """Write them into an array of numpy, of the same size."""
        into[...] = np.asarray(values).reshape(into.shape)

    def single(self, values: Array) -> Array:
        """In float32: for choices and searches, never for a bound."""
        return values.astype(np.float32)

    def double(self, values: Array) -> Array:
        """In float64."""
        return values.astype(np.float64)

    def concat(self, arrays: list[Array], axis: int = 0) -> Array:
        """Along the first axis, or another."""
        return np.concatenate(arrays, axis=axis)

    def transposed(self, values: Array) -> Array:
        """Each matrix of a batch (N, a, b)."""
        return np.swapaxes(values, 1, 2)

    def grams(self, values: Array) -> Array:
        """V V^T of each matrix V (N, a, b): by itself, with its own transpose it takes half the time."""
        found = np.empty((len(values), values.shape[1], values.shape[1]))
        for each, gram in zip(values, found, strict=True):
            np.matmul(each, each.T, out=gram)
        return found

    def erfc(self, values: Array) -> Array:
        """The library's, whose error is assumed in `engine.rounding`."""
        return special.erfc(values)

    def ndtri(self, values: Array) -> Array:
        """An estimate: what it returns becomes the level."""
        return special.ndtri(values)

    def arange(self, count: int) -> Array:
        """0, 1, ..., count - 1."""
        return np.arange(count)

    def powers(self, x: Array, divisors: Float) -> Array:
        """The products of the first 1, 2, ... of x / divisors (N, m)."""
        return np.cumprod(x[:, None] / divisors, axis=1)

    @property
    def bytes(self) -> float:
        """Memory that one chunk of rows may take."""
        return _CPU_BYTES

    def rows(self, doubles: float, fewest: int = 16) -> int:
        """How many rows of so many doubles make a chunk; `fewest`: with fewer, reading what they share would
        cost more than they do.
        """
        return max(int(self.bytes / (8.0 * doubles)), min(fewest, int(_MOST_BYTES / (8.0 * doubles))), 1)

    def inverses(self, A: Array) -> tuple[Array, Array, Array]:
        """Of symmetric matrices (N, d, d): which are definite, about their inverses, else anything, and the
        logarithms of their determinants: for choices, never for a bound.
        """
        ok, inverse, logs = np.zeros(len(A), dtype=bool), np.zeros_like(A), np.zeros(len(A))
        for i, each in enumerate(A):
            factor, info = lapack.dpotrf(each, lower=1)
            ok[i] = info == 0 and np.isfinite(factor[-1, -1])
            if ok[i]:
                half = np.tril(lapack.dpotri(factor, lower=1)[0])
                inverse[i] = half + np.tril(half, -1).T
                logs[i] = 2.0 * np.log(np.diagonal(factor)).sum()
        return ok, inverse, logs

    def definite(self, H: Array, D: Array) -> tuple[Array, Array]:
        """(ok (N,), D' >= D): H + diag(D') is certainly positive semidefinite where ok; H (N, d, d)
        symmetric.

        R4: a Cholesky factorisation that runs to completion; R4's shift covers the rounding of H + D.
        """
        A = H.copy()
        np.einsum("ijj->ij", A)[...] += D
        return np.array([is_certainly_psd(each) for each in A], dtype=bool), D


class Torch(Backend):
    """torch on the CPU or a GPU."""

    def __init__(self, device: str) -> None:
        what = f"device={device!r}"
        torch, xp = extra("torch", what), extra("array_api_compat.torch", what)
        if device == "cuda" and not torch.cuda.is_available():
            raise InvalidInputError("device must be one that torch sees, got 'cuda'")
        self.xp, self.torch, self.device = xp, torch, torch.device(device)
        self.name, self.lot = f"torch {device}", _GPU_LOT if device == "cuda" else self.lot
        self.forms = device == "cuda"
        if device == "cuda":
            self.few, self.most_pairs = 0, float("inf")

    def array(self, values: Any) -> Array:
        if isinstance(values, np.ndarray) and not values.flags.writeable and self.device.type == "cpu":
            values = values.copy()  # torch does not know read-only
        with warnings.catch_warnings():  # nor that what goes to a device is copied anyway
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return self.torch.as_tensor(values, dtype=self.torch.float64, device=self.device)

    def indices(self, values: Any) -> Array:
        return self.torch.as_tensor(values, dtype=self.torch.int64, device=self.device)

    def mask(self, values: Any) -> Array:
        return self.torch.as_tensor(values, dtype=self.torch.bool, device=self.device)

    def numpy(self, values: Array) -> Any:
        return values.cpu().numpy()

    def store(self, values: Array, into: Float) -> None:
        self.torch.from_numpy(into).copy_(values.reshape(into.shape))

    def single(self, values: Array) -> Array:
        return values.to(self.torch.float32)

    def double(self, values: Array) -> Array:
        return values.to(self.torch.float64)

    def concat(self, arrays: list[Array], axis: int = 0) -> Array:
        return self.torch.cat(arrays, dim=axis)

    def transposed(self, values: Array) -> Array:
        return values.mT

    def grams(self, values: Array) -> Array:
        return values @ values.mT

    def erfc(self, values: Array) -> Array:
        return self.torch.special.erfc(values)

    def ndtri(self, values: Array) -> Array:
        return self.torch.special.ndtri(values)

    def arange(self, count: int) -> Array:
        return self.torch.arange(count, device=self.device)

    def powers(self, x: Array, divisors: Float) -> Array:
        return self.torch.cumprod(x[:, None] / self.array(divisors), dim=1)

    @property
    def bytes(self) -> float:
        if self.device.type != "cuda":
            return _CPU_BYTES
        # What torch keeps for itself is free, too: the next call has chunks of the same size.
        cuda = self.torch.cuda
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return 0.3 * float(cuda.mem_get_info(self.device)[0] + kept)

    def inverses(self, A: Array) -> tuple[Array, Array, Array]:
        torch = self.torch
        L, info = torch.linalg.cholesky_ex(A)
        diagonal = torch.diagonal(L, dim1=1, dim2=2)
        ok = (info == 0) & torch.isfinite(diagonal[:, -1])
        L = torch.where(ok[:, None, None], L, torch.eye(A.shape[1], dtype=A.dtype, device=A.device))
        return (
            ok,
            torch.cholesky_inverse(L).contiguous(),
            2.0 * torch.where(ok[:, None], diagonal, 1.0).log().sum(1),
        )

    def definite(self, H: Array, D: Array) -> tuple[Array, Array]:
        """J7: any factor L at all; what is left of A - L L^T in norm is smaller than what was added."""
        torch, d = self.torch, H.shape[1]
        diagonal = torch.diagonal(H, dim1=1, dim2=2)
        trace = (diagonal.abs() + D).sum(1)
        room = (64 * gamma(d + 8) + 1e-9 / d) * trace
        A = H.clone()
        torch.diagonal(A, dim1=1, dim2=2).add_(D + room[:, None])
        L, info = torch.linalg.cholesky_ex(A)
        L.tril_()
        rest = torch.linalg.vector_norm(torch.baddbmm(A, L, L.mT, beta=-1.0), dim=(1, 2))
        sizes = (L * L).sum((1, 2)) + torch.linalg.vector_norm(A, dim=(1, 2))
        left = rest * (1.0 + gamma(d * d + 8)) + 1.01 * gamma(d + 8) * sizes
        return (info == 0) & (left <= 0.99 * room), D + 2.0 * room[:, None]


def chosen(device: str, rows: int) -> Backend:
    """The backend for so many rows: a GPU for "cuda", or, for "auto", where there is one that pays and passes
    its tests; one that fails them is refused with the reason if it was asked for.
    """
    if device == "cpu" or (device == "auto" and (rows < _WORTH_A_GPU or not _has_cuda())):
        return Backend()
    from gpcert.engine.trust import trusted

    reason = trusted("cuda")
    if reason is None:
        return _torch("cuda")
    if device == "auto":
        return Backend()
    raise InvalidInputError(f"device must be one whose float64 can be trusted, got 'cuda': {reason}")


def _has_cuda() -> bool:
    try:
        torch, _ = (extra(name, "a GPU") for name in ("torch", "array_api_compat"))
    except (InvalidInputError, ImportError):
        return False
    return bool(torch.cuda.is_available())


@lru_cache(maxsize=4)
def _torch(device: str) -> Torch:
    return Torch(device)


def to_numpy(backend: Backend, values: Array) -> Float:
    """Doubles of numpy."""
    return np.asarray(backend.numpy(values), dtype=np.float64)
