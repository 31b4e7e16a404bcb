"""Softmax of several latents: who wins, everywhere or at a point, without an integral (V11, V12).

m_c = mean_c + k.alpha_c, Sigma_ce = [c = e] s2 - k^T R_ce k. Class c beats j where D = f_c - f_j has
E D > 0 and E D >= s_k for every other class k, s_k = Cov(D, f_k - (f_c + f_j)/2) = k^T Q k, Q a sum of blocks
of R.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot, largest
from gpcert_check.leaves import Slice, leaves
from gpcert_check.model import Latent
from gpcert_check.model_file import Model
from gpcert_check.planes import Plane, flat
from gpcert_check.reading import fields, listed, need, reals
from gpcert_check.regions import Box, Ends

__all__ = ["Softmax"]

MOST_CLASSES = 100


class Contrast(Latent):
    """D = f_c - f_j: its mean, and Q (as R) with s_k = k^T Q k. z^T (+-Q) z >= -negative |g|^2, so
    |s_k| <= crude; `spare` of it: what clipped variances add at most.
    """

    def __init__(self, base: Latent, alpha: list[arb], m0: arb, Q: arb_mat, few: arb, spare: arb) -> None:
        self.X, self.n, self.D, self.scale, self.s2 = base.X, base.n, base.D, base.scale, base.s2
        self.kernel, self.profile, self.gram = base.kernel, base.profile, base.gram  # type: ignore[method-assign]
        self.alpha, self.m0, self.R = alpha, m0, Q
        self.negative, self.spare, self.crude = few, spare, few * base.s2 + spare

    def mirrored(self) -> Contrast:
        """For -s_k."""
        return Contrast(self, self.alpha, self.m0, -self.R, self.negative, self.spare)


class Ahead:
    """m_D + s_k - spare > 0 by a plane; by the mean alone m_D - crude > 0 ("crude"), or m_D > 0 ("mean")."""

    hints = ""

    def __init__(self, what: str) -> None:
        self.what = what

    def uses_precision(self, leaf: dict[str, Any]) -> bool:
        """Whether the plane needs r = Q k(ref)."""
        return self.what == "plane"

    def plane(self, latent: Contrast, m0: arb, leaf: dict[str, Any], q0: arb, x: Any) -> Plane:
        """V12: s_k >= 2 k.r - q0 - 2 negative s2 (1 - k(x, ref)/s2)."""
        if self.what != "plane":
            return flat(self.outright(latent, m0, leaf))
        return Plane(m0 - q0 - latent.spare, arb(0), arb(2), 2 * latent.negative * latent.s2)

    def outright(self, latent: Contrast, mean: arb, leaf: dict[str, Any]) -> arb:
        """The envelope of the mean (V8)."""
        return mean if self.what == "mean" else mean - latent.crude


class Softmax:
    """A leaf shows of every rival that it is beaten: by one part, or one for m_D > 0 and one for each k."""

    def __init__(self, model: Model) -> None:
        fields(model.likelihood, "name")
        need(3 <= model.C <= MOST_CLASSES, f"this checker knows a softmax of 3 to {MOST_CLASSES} classes")
        self.latents, self.blocks, self.classes = model.latents, model.blocks, model.C
        same = all(latent.kernel == self.latents[0].kernel for latent in self.latents)
        need(same, "this checker knows a softmax whose latents share one kernel")
        self.rho = arb("nan")  # of correlated latents, until it is proved

    def verify(self, fact: Any) -> None:
        """V11: R = W (I + K W)^-1 up to a residual, W = G G^T at every centre, for any lower triangles G."""
        base, C = self.latents[0], self.classes
        n, K = base.n, base.gram(range(base.D)) * arb(base.s2)
        sites = [reals(each, C * (C + 1) // 2) for each in listed(fields(fact, "sites")[0], n, "sites")]
        starts = [c * (c + 1) // 2 for c in range(C)]
        G = [[[arb(x) for x in site[a : a + c + 1]] for c, a in enumerate(starts)] for site in sites]
        W = [[[dot(p, q) for q in g] for p in g] for g in G]  # dot ends with the shorter row
        rows, columns = [arb(0)] * (C * n), [arb(0)] * (C * n)
        for a, line in enumerate(self.blocks or []):
            smoothed = [(R * K).tolist() for R in line]
            for e, R in enumerate(line):
                for i, own in enumerate(R.tolist()):
                    for j, x in enumerate(own):
                        x += sum((part[i][j] * W[j][b][e] for b, part in enumerate(smoothed)), arb(0))
                        size = abs(x - W[j][a][e]) if i == j else abs(x)
                        rows[a * n + i] += size
                        columns[e * n + j] += size
        norm = largest(sum(map(abs, row), arb(0)) for row in K.tolist())
        self.rho = norm * (largest(rows) * largest(columns)).sqrt()
        need(self.rho < 1, "V11: the precision is not W (I + K W)^-1 for these sites")

    def prove(self, claim: Any, region: Box, proof: Any) -> None:
        """A tree whose leaves show that the label beats every rival."""
        _known(claim)
        need(claim.sense > 0, "a margin is bounded below everywhere, above at points")
        boxes = list(leaves(fields(proof, "tree")[0], region))
        told = [listed(fields(leaf, "rivals")[0], self.classes, "rivals") for *_, leaf in boxes]
        for j in range(self.classes):
            if j == claim.label:
                need(all(each[j] is None for each in told), "the label is no rival of its own")
                continue
            own = [(*ends[:2], each[j]) for ends, each in zip(boxes, told, strict=True)]
            self._beaten(self._contrasts(claim.label, j), region, own)

    def _beaten(
        self, contrasts: list[Contrast], region: Box, boxes: Sequence[tuple[Ends, Ends, Any]]
    ) -> None:
        """One rival on all leaves."""
        views = [Slice(each, region, 1) for each in (contrasts[0], *(one.mirrored() for one in contrasts))]
        for _, _, parts in boxes:
            fits = isinstance(parts, list) and len(parts) in (1, len(views))
            need(
                fits and all(isinstance(part, dict) for part in parts), f"a rival has 1 or {len(views)} parts"
            )
        single = [(low, high, parts[0]) for low, high, parts in boxes if len(parts) == 1]
        views[0].prove(single, [Ahead("crude")] * len(single), True)
        for i, view in enumerate(views):
            own = [(low, high, parts[i]) for low, high, parts in boxes if len(parts) > 1]
            view.prove(own, [Ahead("plane" if i else "mean")] * len(own), True)

    def decided(self, claim: Any, point: Sequence[float]) -> bool:
        """Whether the margin at a point certainly has the sign that is claimed."""
        _known(claim)
        c, rivals = claim.label, [j for j in range(self.classes) if j != claim.label]
        return (all if claim.sense > 0 else any)(self._beats(c, j, claim.sense, point) for j in rivals)

    def _beats(self, c: int, j: int, sign: int, point: Sequence[float]) -> bool:
        """Whether c beats j at a point (sign 1), or j beats c."""
        contrasts = self._contrasts(c, j)
        k = self.latents[0].covariances(point)
        column = arb_mat(len(k), 1, k)
        gap = sign * (contrasts[0].m0 + dot(contrasts[0].alpha, k))
        shared = [(column.transpose() * (each.R * column))[0, 0] for each in contrasts]
        most = [sign * s + each.spare for s, each in zip(shared, contrasts, strict=True)]
        return bool(gap > 0) and all(gap > each for each in most)

    def _contrasts(self, c: int, j: int) -> list[Contrast]:
        """One for each other class k; independent latents have the same s_k for all."""
        own, rival = self.latents[c], self.latents[j]
        alpha = [arb(a) - b for a, b in zip(own.alpha, rival.alpha, strict=True)]
        m0, half = arb(own.m0) - rival.m0, (own.R - rival.R) / 2
        if self.blocks is None:
            few = (own.negative + 1 + rival.surplus).max(rival.negative + 1 + own.surplus) / 2
            return [Contrast(own, alpha, m0, half, few, own.lift.max(rival.lift) / 2)]
        few, spare, B = arb(3).sqrt() / 2 * (1 + 2 * self.rho), self.rho * own.s2 / 2, self.blocks
        others = [k for k in range(self.classes) if k not in (c, j)]
        crossed = [(B[c][k] + B[k][c] - B[j][k] - B[k][j]) / 2 for k in others]
        return [Contrast(own, alpha, m0, half - each, few, spare) for each in crossed]


def _known(claim: Any) -> None:
    """margin > 0 and what follows from it."""
    need(claim.quantity == "margin", "of a softmax this checker knows margins")
    follows = claim.value <= 0 if claim.sense > 0 else claim.value >= 0
    need(follows, "of a softmax this checker knows the sign of the margin")
