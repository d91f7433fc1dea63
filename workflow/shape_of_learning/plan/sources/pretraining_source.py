"""Small models that are trained on the run's own corpus."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint
from shape_of_learning.plan.sources.source import Lookup
from shape_of_learning.plan.sources.trained_source import TrainedSource
from shape_of_learning.training.recipe import PretrainingRecipe, pretraining_steps

# Keys of a recipe that stand beside it in the entry, since other models have them, too.
SIZE = ("layers", "hidden_size")


class PretrainingSource(TrainedSource):
    """A local pretraining, saved at log-spaced steps.

    Attributes
    ----------
    size : mapping
        The keys `SIZE` of the recipe.
    device : {"cpu", "cuda"}
        Where it is trained.
    """

    key = "pretraining"
    results = "pretrained"

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        recipe = entry[self.key]
        self.size: Mapping[str, Any] = {name: entry[name] for name in SIZE}
        try:
            PretrainingRecipe(**self.size, **recipe, seed=0)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        super().__init__(model, entry, where, models)
        same = ("attention_heads", "vocabulary", "batch_size", "learning_rate")
        self.table_1 = {
            **{name: recipe[name] for name in same},
            "training_tokens": recipe["last_step"] * self.tokens_per_step,
        }
        self.vocabulary = recipe["vocabulary"]
        self.warmup_steps = recipe["warmup_steps"]
        self.device: str = recipe.get("device", "cpu")
        if "twin_of" in recipe:
            self._check_twin(recipe["twin_of"], models)

    def _check_twin(self, name: str, models: Lookup) -> None:
        """Refuse a twin of what is no pretraining with the same recipe."""
        where = f"{self.where}: `pretraining.twin_of`"
        other = models(name, where)
        if not isinstance(other.source, PretrainingSource) or not (
            {"twin_of", "strength"}.isdisjoint(other.source.recipe)
        ):
            raise InputError(
                f"{where} is `{name}`, which is no pretraining with random numbers of its own and without a "
                "regulariser; name one that is"
            )
        if "strength" not in self.recipe:
            raise InputError(
                f"{where} is `{name}`, and without `pretraining.regulariser` this would be the same model; "
                "add one"
            )
        free = dict.fromkeys(("regulariser", "strength", "twin_of"))
        own, its = {**self.recipe, **free}, {**other.source.recipe, **free}
        own |= {**self.size, "device": self.device}
        its |= {**other.source.size, "device": other.source.device}
        if others := sorted(key for key in own if own[key] != its[key]):
            raise InputError(
                f"{where} is `{name}`, but `{others[0]}` is {own[others[0]]} here and {its[others[0]]} "
                "there; twins differ in `regulariser` and `strength` alone"
            )

    @property
    def separates_texts(self) -> bool:
        """Whether a special token may stand between two texts, as in an encoder's tokenizer."""
        return self.recipe["architecture"] == "bert"

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a training batch."""
        return self.recipe["batch_size"] * self.recipe["context"]

    def saved(self) -> list[int]:
        """Log-spaced ones."""
        return pretraining_steps(self.recipe["last_step"])

    def at(self, step: int) -> Checkpoint:
        """Describe the checkpoint of a step, with its tokens."""
        return replace(super().at(step), tokens=step * self.tokens_per_step)

    @property
    def arguments(self) -> dict[str, Any]:
        """Of :class:`.PretrainingRecipe`, but for the seed."""
        recipe = {**self.size, **self.recipe}
        if self.device == "cpu":  # written or not
            recipe.pop("device", None)
        return recipe
