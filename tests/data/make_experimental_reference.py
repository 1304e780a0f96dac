"""Writes experimental_reference.json: three steps of each optimizer and rates of each scheduler, by MindSpore 2.10.

Usage: python make_experimental_reference.py [output.json]
"""

import json
import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.experimental import optim

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "experimental"))

import cases  # noqa: E402

found = {"optimizers": {}, "schedulers": {}}
for name, options in cases.OPTIMIZERS:
    weight = Parameter(Tensor(np.array(cases.WEIGHT, np.float32)), name="w")
    optimizer = getattr(optim, name)([weight], **options)
    for gradient in cases.GRADIENTS:
        optimizer((Tensor(np.array(gradient, np.float32)),))
    found["optimizers"][f"{name} {options}"] = weight.asnumpy().tolist()
for name, options in cases.SCHEDULERS:
    weight = Parameter(Tensor(np.array(cases.WEIGHT, np.float32)), name="w")
    optimizer = optim.SGD([weight], lr=0.1)
    scheduler = getattr(optim.lr_scheduler, name)(optimizer, **options)
    rates = [float(scheduler.get_last_lr()[0].asnumpy())] if name != "ReduceLROnPlateau" else []
    for step in range(cases.STEPS):
        scheduler.step(*((Tensor(cases.METRICS[step], ms.float32),) if name == "ReduceLROnPlateau" else ()))
        rates.append(float(optimizer.param_groups[0]["lr"].asnumpy()))
    found["schedulers"][f"{name} {options}"] = rates
target = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("experimental_reference.json")
pathlib.Path(target).write_text(json.dumps(found, indent=1) + "\n")
