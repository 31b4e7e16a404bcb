"""Many regions of one model at once, or many boxes of one question: batched products, on numpy or a GPU.

A row is one side (the minimum of P, or of 1 - P) of one region. All rows together are searched for a witness,
expanded at a reference, bounded by a supporting plane (docs/maths/batches.md) and settled; what is not
goes to the branch and bound, with its witness and what is known. `bound` is what the search asks about
many boxes of one region (J29, J30), of stationary kernels other than the Gaussian. For the rest
the statements are those of `bounds`, the rounding is that of R1 in any order of summation.
"""
