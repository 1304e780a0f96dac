"""Precision plans and loss scaling for `keras.Model.fit`: `prepare` a model and its optimizer for `compile`."""

from mixtrain.keras.optimizer import PreparedOptimizer
from mixtrain.keras.prepare import load_model, prepare

__all__ = ["PreparedOptimizer", "load_model", "prepare"]
