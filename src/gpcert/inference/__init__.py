"""Training: Laplace's method, expectation propagation, and the choice of hyper-parameters."""

from gpcert.inference.approximation import Approximation, Fit, Sites
from gpcert.inference.conventions import check_names, feature_names, label_vector, not_fitted_error
from gpcert.inference.ep import fit_ep
from gpcert.inference.inputs import checked_labels, checked_points
from gpcert.inference.laplace import fit_laplace
from gpcert.inference.limits import Bounds, log_bounds
from gpcert.inference.marginal import Evaluated, marginal_likelihood
from gpcert.inference.memory import check_memory
from gpcert.inference.optimise import Optimum, Progress, maximise
from gpcert.inference.softmax import SoftmaxApproximation, fit_softmax
from gpcert.inference.train import METHODS, Settings, Trained, train

__all__ = [
    "METHODS",
    "Approximation",
    "Bounds",
    "Evaluated",
    "Fit",
    "Optimum",
    "Progress",
    "Settings",
    "Sites",
    "SoftmaxApproximation",
    "Trained",
    "check_memory",
    "check_names",
    "checked_labels",
    "checked_points",
    "feature_names",
    "fit_ep",
    "fit_laplace",
    "fit_softmax",
    "label_vector",
    "log_bounds",
    "marginal_likelihood",
    "maximise",
    "not_fitted_error",
    "train",
]
