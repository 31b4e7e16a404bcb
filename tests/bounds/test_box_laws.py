"""The laws of what the search asks: bounds of every quantity over boxes and balls (`helpers.laws`)."""

from __future__ import annotations

import numpy as np

import gpcert as gc
from helpers.cases import BoxCase, drawn, extreme, in_arrays, latent, lead, region_near, share, sign
from helpers.laws import BoundLaws

BOX = np.nan
NORMS = (BOX, BOX, np.inf, 2.0, 1.0, 3.0)
OTHERS = (
    "matern52",
    "matern32",
    "matern12",
    "rational quadratic",
    "sum",
    "product",
    "other sum",
    "other product",
)


class BoxLaws(BoundLaws):
    kind: str | tuple[str, ...] = "probit"
    kernel: str | tuple[str, ...] = "rbf"
    norms: tuple[float, ...] = NORMS
    classes: int | tuple[int, ...] = 2
    n: int | tuple[int, ...] = (1, 3, 5, 8)
    d: int | tuple[int, ...] = (1, 2, 3)

    def quantity(self, rng):
        return share(int(rng.integers(self.classes)), int(rng.integers(2)))

    def model(self, rng):
        return {"kind": self.kind, "kernel": self.kernel, "classes": self.classes, "n": self.n, "d": self.d}

    def make(self, rng, size):
        if size == self.sizes[0]:  # where the order is seen
            post = drawn(rng, **self.model(rng) | {"precision": "laplace"})
            return BoxCase.made(self.quantity(rng), post, region_near(rng, post, BOX, size), None)
        post = drawn(rng, **self.model(rng))
        norm = self.norms[int(rng.integers(len(self.norms)))]
        slack = float(rng.choice([0.0, 1e-3, 0.02]))
        return BoxCase.made(self.quantity(rng), post, region_near(rng, post, norm, size), slack)

    def extreme(self, rng):
        post = extreme(rng, **self.model(rng))
        try:
            return BoxCase.made(self.quantity(rng), post, region_near(rng, post, BOX, 0.3), 0.0)
        except gc.InvalidInputError:
            return None


class TestProbit(BoxLaws):
    order = 2
    count = 40


class TestManyFeatures(BoxLaws):
    """Cubics flattened, planes on what is left."""

    n, d = (3, 8), (13, 26)
    kernel = ("rbf", "rbf", "matern52", "matern32")
    count = 16


class TestLogit(BoxLaws):
    kind = "logit"
    order = 2


class TestOtherLinks(BoxLaws):
    kind = (
        "scaled probit",
        "steep probit",
        "five erf",
        "floored",
        "floored logit",
        "link",
        "cloglog",
        "stairs",
        "narrow",
    )
    kernel = ("rbf", "rbf", "matern52")
    count = 30
    informative = 0.4


class TestOtherKernels(BoxLaws):
    kernel = OTHERS
    order = 1.5
    count = 40


class TestSign(BoxLaws):
    kind = ("probit", "logit", "link")
    kernel = ("rbf", "rbf", *OTHERS)
    slack = None  # sharp at 1/2 alone

    def quantity(self, rng):
        return sign(int(rng.integers(2)))


class TestFewCoordinates(BoxLaws):
    """Norm 0."""

    norms = (0.0,)
    kernel = ("rbf", "rbf", "matern52")
    d = (2, 3, 5)


class TestLatents(BoxLaws):
    order = 2
    count = 40

    def quantity(self, rng):
        return latent(int(rng.integers(4)))


class TestLatentsOfOtherKernels(TestLatents):
    kernel = OTHERS
    order = 1.5


class TestManyTogether(BoxLaws):
    """The same, where many boxes of a question are bounded together."""

    kind = ("probit", "logit", "scaled probit", "five erf")
    kernel = ("matern52", "matern32", "rational quadratic")
    norms = (BOX, np.inf)
    order = 1.5
    count = 60

    def quantity(self, rng):
        if rng.random() < 0.3:
            return in_arrays(latent(int(rng.integers(4))), 0.0)
        label, side = int(rng.integers(2)), int(rng.integers(2))
        return in_arrays(share(label, side), (2.0 * label - 1.0) * (1.0 - 2.0 * side))


class TestSoftmax(BoxLaws):
    """Of correlated latents, two of which are one."""

    kind = "softmax"
    kernel = ("rbf", "rbf", "matern52")
    classes = 3
    order = 1.5
    slack = 0.05  # cells and tangents are chosen by size
    n = (1, 3, 5)
    count = 8

    def extreme(self, rng):
        return NotImplemented  # the judge of several classes takes its time there: the soak asks


class TestSoftmaxOfTwo(TestSoftmax):
    classes = 2


class TestSoftmaxOfFive(TestSoftmax):
    classes = 5
    count = 4


class TestIndependentSoftmax(TestSoftmax):
    kind = ("independent", "separate")
    kernel = ("rbf", "rbf", *OTHERS)


class TestOneVsRest(TestSoftmax):
    kind = ("one-vs-rest probit", "one-vs-rest logit", "one-vs-rest erf")
    kernel = ("rbf", "rbf", *OTHERS)
    order = 0.5


class TestOneVsRestOfManyFeatures(TestOneVsRest):
    """All classes at one point (O6)."""

    kind = "one-vs-rest probit"
    kernel = ("rbf", "matern52")
    n, d = (3, 8), 26
    order = None
    count = 8


class TestLabels(TestSoftmax):
    """Of a softmax: the lead over the next class."""

    kind = ("softmax", "independent", "separate")
    slack = None  # sharp at 0 alone
    order = None

    def quantity(self, rng):
        return lead(int(rng.integers(self.classes)))


class TestLabelsOfOneVsRest(TestLabels):
    kind = ("one-vs-rest probit", "one-vs-rest logit")


class TestLabelsOfFive(TestLabels):
    classes = 5
    count = 4
