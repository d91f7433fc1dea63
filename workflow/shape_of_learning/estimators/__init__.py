"""The measures of shape, each a function on arrays: NumPy arrays and torch tensors alike.

`anisotropy`, `cosine`, `spread`
    Measures of a cloud of vectors; `spread` has those of their covariance's eigenvalues, too.
`linearity`
    Measures of a `pair` of clouds, before and after a block, by `linear_fits` of the one on the other.
`dimension`
    Intrinsic dimension, from the distances that `neighbours` finds.
`weights`
    Measures of a model's own matrices, and the isotropy of the partition function.
`adjustments`
    Removal of means and directions, fitted on some vectors and applied to others; `k_means` finds clusters.
`arrays`
    What comes in, as float64 matrices; where NumPy and PyTorch differ.

A function whose name ends in ``_without`` finds the value of all vectors, and those without each of some
parts of them.
"""
