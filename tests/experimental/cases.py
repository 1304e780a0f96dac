"""The optimizers and schedulers that are compared with the reference, and the gradients they get."""

from __future__ import annotations

from typing import Any, Final

WEIGHT: Final = [[1.0, -2.0], [0.5, 3.0]]
GRADIENTS: Final = [[[0.1, -0.2], [0.3, 0.4]], [[-0.5, 0.1], [0.2, 0.4]], [[0.3, 0.3], [-0.1, 0.2]]]
STEPS: Final = 6
METRICS: Final = [1.0, 1.1, 1.2, 0.5, 0.6, 0.7]

OPTIMIZERS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.01}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.01}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
    ("Rprop", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.5, "t0": 1.0, "weight_decay": 0.01}),
]
SCHEDULERS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("StepLR", {"step_size": 2, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 4], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {"start_factor": 0.5, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 4, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 3, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2, "mode": "triangular2"}),
    ("ReduceLROnPlateau", {"factor": 0.5, "patience": 0}),
]
