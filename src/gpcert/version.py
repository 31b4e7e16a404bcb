"""The version of the package, stated here once."""

__version__ = "0.1.0.dev0"
