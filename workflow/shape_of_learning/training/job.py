"""Define the jobs that train models.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from typing import NamedTuple

from shape_of_learning.embeddings.protocol import Weights
from shape_of_learning.training.recipe import FinetuningRecipe, PretrainingRecipe


class PretrainingJob(NamedTuple):
    """A small model that is trained on the text of the run."""

    model: str
    recipe: PretrainingRecipe


class FinetuningJob(NamedTuple):
    """A checkpoint that is trained further on a task.

    Attributes
    ----------
    model : str
        The name of the fine-tuned model.
    origin : Weights
        The checkpoint at the start.
    recipe : FinetuningRecipe
    """

    model: str
    origin: Weights
    recipe: FinetuningRecipe
