"""`export`: a foreign model straight into a posterior file, for environments that hold little else.

It needs numpy (from 1.26 on), scipy and safetensors, all of which go with every release of GPflow that has a
wheel for Python 3.11: `pip install --no-deps gpcert` there, certify elsewhere after `gpcert.load`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from gpcert.adapters.foreign import refuse
from gpcert.adapters.gpflow import from_gpflow
from gpcert.adapters.gpy import from_gpy
from gpcert.adapters.gpytorch import from_gpytorch
from gpcert.adapters.scikit_learn import from_sklearn
from gpcert.model_file import save
from gpcert.posterior import Posterior

_READERS: dict[str, Callable[..., Posterior]] = {
    "sklearn": from_sklearn,
    "GPy": from_gpy,
    "gpytorch": from_gpytorch,
    "gpflow": from_gpflow,
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
    return next((_READERS[library] for library in libraries if library in _READERS), None)
