"""The measures of shape, each a function on arrays: NumPy arrays and torch tensors alike.

`anisotropy`, `average_cosine`, `spectrum`
    Measures of a cloud of vectors, one formula in each file. `leading_without_parts` finds anisotropies
    without some of the vectors.
`linearity`, `block_norms`, `fit_errors`
    Measures of a `pair` of clouds, before and after a block. `moments` are sums over its vectors,
    `least_squares` follows from these, `fits_without_parts` leaves out some of the vectors.
`log_partition_isotropy`, `window_cosine`
    Further measures of vectors: of the partition function, of pairs within and between windows.
`participation_ratio`, `isoscore`, `top_share`; `effective_rank`, `alpha_req`, `directions_for`
    How variance is spread over directions: from vectors, without their eigenvalues; from eigenvalues, which
    `eigenvalues` reads.
`final_norm`
    Lengths of the parameters of a model's final normalisation.
`adjustments`
    Removal of means and directions, fitted on some vectors and applied to others; `k_means` finds clusters.
`two_nn`, `two_nn_authors`, `gride`, `mada`, `mom`, `mle`
    Intrinsic dimension from distances to nearest neighbours, one estimator in each file;
    `neighbour_radii` is what they share.
`neighbours`
    These distances, exact: `few_neighbours` is faster where five or fewer are asked for,
    `neighbours_on_gpu` searches on a GPU, `squared_distances` bounds the error of all of them.
`arrays`
    What comes in, as float64 matrices; where NumPy and PyTorch differ.
"""
