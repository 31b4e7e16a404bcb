"""Workers on other machines, by joblib's own backends: a Dask scheduler, or Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpcert.errors import GpcertError, InvalidInputError
from gpcert.extras import extra


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Batches inside run on the cluster at this address: tcp://HOST:PORT of Dask, ray, ray://HOST:PORT."""
    if address is None:
        yield
    elif address.startswith(("tcp://", "tls://", "ucx://")):
        with _dask(address):
            yield
    elif address == "ray" or address.startswith("ray://"):
        with _ray(address):
            yield
    else:
        raise InvalidInputError(f"--cluster must be tcp://HOST:PORT, ray or ray://HOST:PORT, got {address!r}")


@contextmanager
def _dask(address: str) -> Iterator[None]:
    import joblib

    distributed = extra("distributed", "Dask")

    try:
        client = distributed.Client(address, timeout=20)
    except (OSError, TimeoutError) as error:
        raise GpcertError(
            f"--cluster must be a Dask scheduler that answers, got {address} ({error})"
        ) from None
    with client, joblib.parallel_config("dask"):
        yield


@contextmanager
def _ray(address: str) -> Iterator[None]:
    import joblib

    ray, backend = extra("ray", "Ray"), extra("ray.util.joblib", "Ray")

    if not ray.is_initialized():
        ray.init(address=None if address == "ray" else address, log_to_driver=False)
    backend.register_ray()
    with joblib.parallel_config("ray"):
        yield
