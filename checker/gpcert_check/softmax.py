"""Softmax of several latents: who wins, everywhere or at a point, without an integral where means and
shared covariances tell (V11, V12), else by one at a reference (V15).

m_c = mean_c + k.alpha_c, Sigma_ce = [c = e] s2 - k^T R_ce k. Class c beats j where D = f_c - f_j has
E D > 0 and E D >= s_k for every other class k, s_k = Cov(D, f_k - (f_c + f_j)/2) = k^T Q k, Q a sum of blocks
of R.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any

from flint import arb, arb_mat

from gpcert_check.anchors import Near, around
from gpcert_check.arithmetic import ball, dot, largest
from gpcert_check.leaves import Slice, leaves
from gpcert_check.model import Latent
from gpcert_check.model_file import Model
from gpcert_check.planes import Plane, flat
from gpcert_check.reading import fields, listed, need, reals
from gpcert_check.regions import Box, Ends
from gpcert_check.shares import Slopes, holds, prove_share
from gpcert_check.work import spend

__all__ = ["Softmax"]

MOST_CLASSES = 100
MOST_TERMS = 10**9  # of all integrals of a file: an hour or two


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
    """A leaf shows of every rival that it is beaten: by one part, by one for m_D > 0 and one for each k, or
    by a reference whose integral does (V15).
    """

    def __init__(self, model: Model) -> None:
        fields(model.likelihood, "name")
        need(3 <= model.C <= MOST_CLASSES, f"this checker knows a softmax of 3 to {MOST_CLASSES} classes")
        self.latents, self.blocks, self.classes = model.latents, model.blocks, model.C
        same = all(latent.kernel == self.latents[0].kernel for latent in self.latents)
        need(same, "this checker knows a softmax whose latents share one kernel")
        self.rho = arb("nan")  # of correlated latents, until it is proved
        self.spent, self._norms = 0, dict[tuple[int, int], arb]()

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
        """A tree whose leaves show that the label beats every rival, or how probable it is (V18)."""
        if claim.quantity == "probability":
            return prove_share(self, claim, region, proof)
        _known(claim)
        need(claim.sense > 0, "a margin is bounded below everywhere, above at points")
        boxes = list(leaves(fields(proof, "tree")[0], region))
        told = [listed(fields(leaf, "rivals")[0], self.classes, "rivals") for *_, leaf in boxes]
        for j in range(self.classes):
            if j == claim.label:
                need(all(each[j] is None for each in told), "the label is no rival of its own")
                continue
            own = [(*ends[:2], each[j]) for ends, each in zip(boxes, told, strict=True)]
            for lower, upper, parts in own:
                if isinstance(parts, dict):
                    near = self.on(region, lower, upper, parts)
                    need(near.ahead(claim.label, j), "V15: the label does not win near the reference")
            ordered = [each for each in own if not isinstance(each[2], dict)]
            self._beaten(self._contrasts(claim.label, j), region, ordered)

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
        """Whether the margin at a point certainly has the sign that is claimed, or P is on the right side."""
        if claim.quantity == "probability":
            return holds(self, claim, point)
        _known(claim)
        base = self.latents[0]  # contrasts and kernels of every rival
        spend((self.classes * base.n) ** 2 // 4 + self.classes * base.n * base.D)
        c, rivals = claim.label, [j for j in range(self.classes) if j != claim.label]
        unsure = [j for j in rivals if not self._beats(c, j, claim.sense, point)]
        if not unsure or (claim.sense < 0 and len(unsure) < len(rivals)):
            return True
        near = self.near([arb(x) for x in point], arb(0))
        if claim.sense > 0:
            return all(near.ahead(c, j) for j in unsure)
        return any(near.ahead(j, c) for j in unsure)

    def on(self, region: Box, lower: Ends, upper: Ends, anchor: Any) -> Near:
        """The latents on a cell, seen from a reference."""
        base, reference = self.latents[0], reals(fields(anchor, "ref")[0], len(region.moving))
        need(base.profile.gaussian, "V15: cells are of the Gaussian kernel")
        cell = region.cell(lower, upper, reference, [base.scale[j] for j in region.moving])
        x = [ball(a) for a in region.lower]
        for j, a in zip(region.moving, reference, strict=True):
            x[j] = arb(a)
        far = dict(zip(region.moving, cell.far, strict=True))
        return self.near(x, cell.reach([1] * len(reference)), [far.get(j, arb(0)) for j in range(base.D)])

    def near(self, x: list[arb], square: arb, far: Sequence[arb] | None = None) -> Near:
        """V15: the latents where |d|^2 <= square and |d_j| <= far_j (None: not known) around x."""
        base, C, s2, rho = self.latents[0], self.classes, self.latents[0].s2, self.rho
        self._spend((C * base.n) ** 2 // 20)  # products, each a small part of a term
        spend(base.n * base.D)
        k = base.covariances(x)
        mean = [each.m0 + dot(each.alpha, k) for each in self.latents]
        r = [[self._explained(a, b, k) for b in range(C)] for a in range(C)]
        V = [[(s2 if a == b else 0) - dot(k, r[a][b]) for b in range(C)] for a in range(C)]
        clipped = [row[:] for row in V]
        for c in range(C):
            clipped[c][c] = V[c][c].nonnegative_part()
        law, apart, ends = around(mean, clipped), {}, {}
        slope = Slopes(base, x, k, square, far)
        pair: Any = SimpleNamespace(
            s2=2 * s2, lift=arb(0), negative=rho, top=2 * (1 + rho) * s2, bottom=arb(0)
        )
        for a, b in combinations(range(C), 2):
            alpha = [arb(p) - q for p, q in zip(self.latents[a].alpha, self.latents[b].alpha, strict=True)]
            moved = slope.moved(alpha, self._norm(a, b))
            apart[a, b] = abs(mean[a] - mean[b] - (arb(law.mean[a]) - law.mean[b])) + moved
            if self.blocks is None:
                both = [slope.ends(self.latents[c], V[c][c], r[c][c]) for c in (a, b)]
                ends[a, b] = both[0][0] + both[1][0], both[0][1] + both[1][1]
            else:
                difference = V[a][a] + V[b][b] - V[a][b] - V[b][a]
                four = zip(r[a][a], r[b][b], r[a][b], r[b][a], strict=True)
                ends[a, b] = slope.ends(pair, difference, [p + q - u - v for p, q, u, v in four])
        return Near(law, apart, ends, self._spend)

    def _spend(self, terms: int) -> None:
        self.spent += terms
        need(self.spent <= MOST_TERMS, "V15: the integrals ask for more work than this checker will do")

    def _explained(self, a: int, b: int, k: list[arb]) -> list[arb]:
        """R_ab k: Sigma_ab is [a = b] s2 less k times it."""
        if a != b and self.blocks is None:
            return [arb(0)] * len(k)
        R = self.latents[a].R if self.blocks is None else self.blocks[a][b]
        entries: list[arb] = (R * arb_mat(len(k), 1, k)).entries()
        return entries

    def _norm(self, a: int, b: int) -> arb:
        """The squared norm of the difference of two mean functions."""
        if (a, b) not in self._norms:
            base, own, other = self.latents[0], self.latents[a], self.latents[b]
            alpha = [arb(p) - q for p, q in zip(own.alpha, other.alpha, strict=True)]
            column = arb_mat(base.n, 1, alpha)
            square = (column.transpose() * (base.gram(range(base.D)) * column))[0, 0] * base.s2
            self._norms[a, b] = largest([square])
        return self._norms[a, b]

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
        few, B = arb(3).sqrt() / 2 * (1 + self.rho), self.blocks  # nothing is clipped (V11)
        others = [k for k in range(self.classes) if k not in (c, j)]
        crossed = [(B[c][k] + B[k][c] - B[j][k] - B[k][j]) / 2 for k in others]
        return [Contrast(own, alpha, m0, half - each, few, arb(0)) for each in crossed]


def _known(claim: Any) -> None:
    """margin > 0 and what follows from it."""
    follows = claim.value <= 0 if claim.sense > 0 else claim.value >= 0
    need(follows, "of the margins of a softmax this checker knows the sign")
