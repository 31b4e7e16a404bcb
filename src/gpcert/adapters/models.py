"""`posterior_of`: any model as the posterior that a question about it uses, converted once."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.adapters.export import reader_of
from gpcert.adapters.foreign import library_of, refuse
from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.posterior import Posterior

__all__ = ["posterior_of"]

_RULE = "a Posterior, a fitted GPClassifier, pipeline or search, or a model of GPy, GPyTorch or GPflow"
#: Model -> (digest of its parameters, its posterior): a model that was trained further is converted again.
_known: WeakKeyDictionary[Any, tuple[str, Posterior]] = WeakKeyDictionary()


def posterior_of(model: Any) -> Posterior:
    """The posterior that questions about a model use.

    A Posterior is its own; of a fitted `GPClassifier` it is `posterior_`, of a search (`GridSearchCV`) that
    of its best estimator; pipelines, and models of other libraries, are converted by `from_sklearn` and the
    others with their defaults, once: the result is remembered until the model's parameters change.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> gc.posterior_of(clf) is clf.posterior_
    True
    """
    if isinstance(model, Posterior):
        return model
    if isinstance(model, str | type):
        hint = ": gc.load reads a file" if isinstance(model, str) else ": an object, not its class"
        raise InvalidInputError(f"post must be {_RULE}, got {getattr(model, '__name__', repr(model))}{hint}")
    if hasattr(model, "best_estimator_"):
        return posterior_of(model.best_estimator_)
    if library_of(model) == "sklearn" and hasattr(model, "refit"):
        raise NotFittedError(
            f"post must be fitted, with refit=True, got a {type(model).__name__} that is not"
        )
    own = getattr(model, "posterior_", None)
    if isinstance(own, Posterior):
        return own
    reader = reader_of(model)
    if reader is None:
        if library_of(model) == "gpcert" and hasattr(model, "fit"):
            raise NotFittedError(f"post must be fitted, got a {type(model).__name__} before fit")
        refuse("post", _RULE, model)
    state = _state(model)
    found = _known.get(model)
    if found is None or found[0] != state:
        found = _known[model] = state, reader(model)
    return found[1]


def _state(model: Any) -> str:
    """A digest of the parameters and the data that a model holds."""
    from joblib import hash

    library = library_of(model)
    if library == "sklearn":
        return str(hash(model))
    if hasattr(model, "param_array"):  # GPy
        return str(hash([np.array(part) for part in (model.param_array, model.X, model.Y)]))
    if hasattr(model, "state_dict"):  # GPyTorch
        return str(hash({name: np.array(t.detach().cpu()) for name, t in model.state_dict().items()}))
    parts = [*getattr(model, "parameters", ()), *(getattr(model, "data", None) or ())]  # GPflow
    return str(hash([np.array(part) for part in parts]))
