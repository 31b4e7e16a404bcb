"""`posterior_of`: any model as the posterior that a question about it uses, converted once; `export` of it.

`export` needs numpy (from 1.26 on), scipy and safetensors, all of which go with every release of GPflow that
has a wheel for Python 3.11: `pip install --no-deps gpcert` there, certify elsewhere after `gpcert.load`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pickle import PicklingError
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.adapters.foreign import library_of, refuse
from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.model_file import save
from gpcert.posterior import Posterior

#: Library -> where its models are read, and by which function.
_READERS = {
    "sklearn": ("scikit_learn", "from_sklearn"),
    "GPy": ("gpy", "from_gpy"),
    "gpytorch": ("gpytorch", "from_gpytorch"),
    "gpflow": ("gpflow", "from_gpflow"),
}


def export(model: Any, path: str | os.PathLike[str], **options: Any) -> Posterior:
    """Convert a model of a supported library, check it, and write it to a posterior file.

    Nothing of gpcert that certifies is imported: it runs where the library lives.

    Parameters
    ----------
    model : model
        A fitted model of the library.
    path : path
        The file.
    **options
        Those of the library's `from_...`.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.gaussian_process import GaussianProcessClassifier
    >>> model = GaussianProcessClassifier().fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> file = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> gc.export(model, file).digest == gc.load(file).digest
    True
    """
    reader = reader_of(model)
    if reader is None:
        refuse("model", "a model of scikit-learn, GPy, GPyTorch or GPflow", model)
    post = reader(model, **options)
    save(post, path)
    return post


def reader_of(model: Any) -> Callable[..., Posterior] | None:
    """What reads models of the library that defines the model's type, or a type it is derived from."""
    libraries = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    found = next((_READERS[library] for library in libraries if library in _READERS), None)
    return None if found is None else getattr(import_module(f"gpcert.adapters.{found[0]}"), found[1])


_RULE = "a Posterior, a fitted GPClassifier, pipeline or search, or a model of GPy, GPyTorch or GPflow"
#: Model -> (digest of its contents, its posterior): a model that was changed is converted again.
_known: WeakKeyDictionary[Any, tuple[str | None, Posterior]] = WeakKeyDictionary()


def posterior_of(model: Any) -> Posterior:
    """The posterior that questions about a model use.

    A Posterior is its own; of a fitted `GPClassifier` it is `posterior_`, of a search (`GridSearchCV`) that
    of its best estimator; pipelines, and models of other libraries, are converted by `from_sklearn` and the
    others with their defaults, once: the result is remembered until the model changes.

    Parameters
    ----------
    model : model
        A Posterior, or a fitted model of this package, scikit-learn, GPy, GPyTorch or GPflow.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
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
    if library_of(model) == "sklearn" and hasattr(model, "refit") and not hasattr(model, "estimator_"):
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
    known, state = _known.get(model), _state(model)
    if known is not None and known[0] is not None and known[0] == state:
        return known[1]
    made = reader(model)
    if known is not None and known[1].digest == made.digest:  # what was verified of it is remembered, too
        made = known[1]
    _known[model] = _state(model), made  # GPyTorch draws what it has not drawn yet when it is first called
    return made


def _state(model: Any) -> str | None:
    """A digest of all that a model predicts with; None: it holds what has none, such as a lambda."""
    from joblib import hash

    try:
        return str(hash(model if library_of(model) == "sklearn" else _contents(model)))
    except (PicklingError, TypeError, AttributeError):
        return None


def _contents(model: Any) -> list[Any]:
    """Numbers, and the types and settings of the parts: another kernel may have the same parameters."""
    if hasattr(model, "param_array"):  # GPy
        weights = getattr(model.posterior, "woodbury_vector", None)
        parts = [model, *_tree(model.kern), model.likelihood, model.likelihood.gp_link]
        others = [type(each).__name__ for each in (model.mean_function, model.normalizer)]
        return [
            *map(np.array, (model.param_array, model.X, model.Y, weights)),
            *map(_settings, parts),
            others,
        ]
    if hasattr(model, "state_dict"):  # GPyTorch
        tensors = {name: np.array(t.detach().cpu()) for name, t in model.state_dict().items()}
        return [tensors, *map(_settings, model.modules())]
    arrays = [*getattr(model, "parameters", ()), *(getattr(model, "data", None) or ())]  # GPflow
    return [*map(np.array, arrays), *map(_settings, (model, *getattr(model, "submodules", ())))]


def _tree(kernel: Any) -> list[Any]:
    """A kernel of GPy with all that it is made of."""
    return [kernel, *(each for part in getattr(kernel, "parts", ()) for each in _tree(part))]


def _settings(part: Any) -> tuple[str, dict[str, str]]:
    """The type of a part, and its attributes that are plain: `nu` of a Matern kernel."""
    plain = (bool, int, float, str, tuple, slice)
    kept = {k: repr(v) for k, v in vars(part).items() if isinstance(v, plain) and k != "training"}
    return type(part).__qualname__, kept
