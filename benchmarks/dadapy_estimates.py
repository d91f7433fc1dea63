"""Print DADApy's estimates for :mod:`benchmarks.truth`: `python dadapy_estimates.py FILE.npy ...`."""

import json
import sys

import numpy as np
from dadapy import IdEstimation

estimates = []
for file in sys.argv[1:]:
    states = IdEstimation(np.load(file), maxk=100, verbose=False)
    two_nn, *_ = states.compute_id_2NN(mu_fraction=0.9)
    dimensions_by_scale, *_ = states.return_id_scaling_gride(range_max=16)
    estimates.append({"TwoNN": float(two_nn), "Gride": float(dimensions_by_scale[-1])})  # n1 = 8
print(json.dumps(estimates))
