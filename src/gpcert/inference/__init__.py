"""Training: Laplace's method, expectation propagation, and the choice of hyper-parameters."""
