"""Describe a measure that has left its band, and send alerts to trackers."""

from typing import NamedTuple


class BandAlert(NamedTuple):
    """A measure that is out of its band.

    Attributes
    ----------
    model : str
        The name in the table.
    step : int
    measure : str
    layer : int or None
        None for the mean over the chosen blocks.
    value : float
        NaN if it is undefined, as for a model that has diverged.
    low, high : float
        The band.
    """

    model: str
    step: int
    measure: str
    layer: int | None
    value: float
    low: float
    high: float

    @property
    def quantity(self) -> str:
        """The measure, with its layer if it has one."""
        return self.measure if self.layer is None else f"{self.measure} of layer {self.layer}"

    @property
    def title(self) -> str:
        """The quantity and the model, in a few words."""
        return f"{self.quantity} of {self.model} left its band"

    @property
    def sentence(self) -> str:
        """The step, the value and the band."""
        begin = f"step {self.step}: {self.quantity} is"
        if self.value != self.value:
            return f"{begin} undefined, and should be {self.low:g} to {self.high:g}"
        return f"{begin} {self.value:.4g}, outside of {self.low:g} to {self.high:g}"


def alert_trackio(alert: BandAlert) -> None:
    """Raise an alert in the current run of trackio."""
    import trackio

    trackio.alert(alert.title, alert.sentence, level=trackio.AlertLevel.WARN)


def alert_wandb(alert: BandAlert) -> None:
    """Raise an alert in the current run of Weights & Biases."""
    import wandb

    wandb.alert(title=alert.title, text=alert.sentence, level=wandb.AlertLevel.WARN)
