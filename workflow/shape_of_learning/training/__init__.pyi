from shape_of_learning.checkpoints.manifest import write_manifest as write_manifest
from shape_of_learning.training.alerts import BandAlert as BandAlert
from shape_of_learning.training.alerts import alert_trackio as alert_trackio
from shape_of_learning.training.alerts import alert_wandb as alert_wandb
from shape_of_learning.training.callback import ShapeCallback as ShapeCallback
from shape_of_learning.training.callback import ShapeProbe as ShapeProbe
