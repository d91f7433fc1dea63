# What type checkers see of the names that are imported on first use.
from shape_of_learning.estimators.anisotropy import anisotropy as anisotropy
from shape_of_learning.estimators.arrays import distinct_rows as distinct_rows
from shape_of_learning.estimators.cosine import average_cosine as average_cosine
from shape_of_learning.estimators.dimension import gride as gride
from shape_of_learning.estimators.dimension import mada as mada
from shape_of_learning.estimators.dimension import mle as mle
from shape_of_learning.estimators.dimension import mom as mom
from shape_of_learning.estimators.dimension import two_nn as two_nn
from shape_of_learning.estimators.linearity import block_cosine as block_cosine
from shape_of_learning.estimators.linearity import block_norm_ratio as block_norm_ratio
from shape_of_learning.estimators.linearity import linear_map as linear_map
from shape_of_learning.estimators.linearity import linearity as linearity
from shape_of_learning.estimators.linearity import linearity_adjusted as linearity_adjusted
from shape_of_learning.estimators.linearity import linearity_held_out as linearity_held_out
from shape_of_learning.estimators.linearity import linearity_increment as linearity_increment
from shape_of_learning.estimators.linearity import (
    linearity_increment_adjusted as linearity_increment_adjusted,
)
from shape_of_learning.estimators.linearity import (
    linearity_increment_held_out as linearity_increment_held_out,
)
from shape_of_learning.estimators.neighbours import nearest_distances as nearest_distances
from shape_of_learning.estimators.neighbours import nearest_neighbours as nearest_neighbours
from shape_of_learning.estimators.spread import effective_rank as effective_rank
from shape_of_learning.estimators.spread import isoscore as isoscore
from shape_of_learning.estimators.spread import participation_ratio as participation_ratio
from shape_of_learning.estimators.weights import log_partition_isotropy as log_partition_isotropy
from shape_of_learning.one_model.in_python import compare as compare
from shape_of_learning.one_model.in_python import measure as measure
from shape_of_learning.one_model.plot import plot as plot

__version__: str
