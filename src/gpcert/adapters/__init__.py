"""Models of other libraries as posteriors; no library is imported here, only models of it are read."""
