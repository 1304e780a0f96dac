"""mixtrain's precision under `keras.Model.fit`: `prepare` makes a model and its optimizer ready for `compile`."""

from mixtrain.keras.optimizer import PreparedOptimizer
from mixtrain.keras.prepare import load_model, prepare

__all__ = ["PreparedOptimizer", "load_model", "prepare"]
