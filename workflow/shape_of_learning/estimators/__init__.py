"""Measures of shape: functions on NumPy arrays and torch tensors.

`anisotropy`, `cosine`, `spread`
    Measures of a cloud of vectors; `spread` has those of their covariance's eigenvalues, too.
`linearity`
    Measures of a `pair` of clouds, before and after a block, by `linear_fits` of the one on the other.
`dimension`
    Intrinsic dimension, from the distances that `neighbours` finds.
`weights`
    Measures of a model's own matrices, and the isotropy of the partition function.
`coordinates`, `massive`
    Sizes of vectors and of their coordinates, and the tokens whose vectors are much longer than others.
`arrays`
    Input as float64 matrices, and the differences between NumPy and PyTorch.

A function whose name ends in ``_jackknife`` returns the value of all vectors, and the values without each of several
sets of rows.
"""
