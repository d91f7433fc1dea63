from shape_of_learning.training.callback import ShapeCallback as ShapeCallback
from shape_of_learning.training.callback import ShapeProbe as ShapeProbe
