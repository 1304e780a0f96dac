"""Train on the batch of a planted fault, compare the finding with what is right, and do what it advises."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model
from mixtrain.network.walk import tree_of
from tests.diagnostics.planted import HALVES, Fault


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ignore what else is warned of such faults: at the end of the epoch, and of outputs that are finite but wrong."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        warnings.filterwarnings("ignore", ".*without loss scaling.*")
        # Where XLA fuses what a layer computes, its outputs may be finite and wrong before its gradients are not.
        warnings.filterwarnings("ignore", "Model: the outputs of .* off in half precision")
        yield


def train(fault: Fault, level: str, half: str, *, sink: bool, network: Any = None, **options: Any) -> tuple[Model, Any]:
    """Train on the batch of a fault; return the Model and the history."""
    if network is None:
        network = made(fault)
    settings = {
        "loss_scale_manager": DynamicLossScaleManager(fault.scale), "explain_overflow": True, **fault.settings(),
        **options,
    }
    batch = settings.pop("batch", fault.batch)()
    batches = [batch] * fault.steps + ([] if fault.last is None else [fault.last()])
    rate = settings.pop("rate", fault.rate)
    model = Model(
        network, fault.loss, keras.optimizers.SGD(rate), amp_level=level,
        cast_model_type=None if level == "O0" else getattr(mixtrain, half), **settings,
    )
    if fault.fit is not None:
        return model, model.fit(*batch, batch_size=len(batch[1]), dataset_sink_mode=sink, verbose=0, **fault.fit)
    return model, model.train(1, batches, dataset_sink_mode=sink, verbose=0)


def made(fault: Fault) -> Any:
    """Return the network of a fault; the same each time."""
    keras.utils.set_random_seed(0)
    mixtrain.set_seed(0)
    return fault.network()


def layer_at(network: Any, path: str) -> Any:
    return next(node.layer for node in tree_of(network).walk() if node.path == path)


def wrong(fault: Fault, level: str, half: str, *, sink: bool) -> list[str]:
    """Explain a fault and apply the cure; return what is wrong."""
    model, _ = train(fault, level, half, sink=sink)
    if not model.overflows:
        return [] if fault.fused else ["no step is skipped"]
    record = model.overflows[0]
    finding = record.finding
    problems = []
    if fault.fused and finding.kind in ("gradient", "parameter") and (fault.cure == "to_float" or finding.cure):
        # Where the network computes in float32 the step may not be fused: then that is a cure too, and it is tried.
        words = fault.words if fault.words.startswith("keep") else f"keep layer {fault.layer} in float32"
        fault = dataclasses.replace(
            fault, kind=finding.kind, layer=finding.layer, count=None, nan=None, size=None, largest=None, words=words,
            cure="to_float",
        )
    for name in ("kind", "layer", "column", "count", "nan", "size", "dtype", "largest"):
        expected, got = getattr(fault, name), getattr(finding, name, "missing")
        unknown = expected is None or expected == "" and name == "kind"
        if name == "layer":
            unknown = fault.kind == "" or fault.cure == "rate"
        if name == "column":
            unknown = expected is None and fault.kind != "input"
        if name == "largest" and expected is not None and got is not None:
            got = expected if abs(got - expected) <= 2**-10 * expected else got
        if not unknown and got != expected:
            problems.append(f"{name}: {got} in place of {expected}")
    if fault.keep is not None:
        rows = {row.path: row.compute_dtype.name for row in model.precision_report().rows}
        keep = tuple(path for path in fault.keep if rows[path] in HALVES)
        if finding.cure != keep:
            problems.append(f"cure: {finding.cure} in place of {keep}")
    if fault.helps is not None and finding.scale != fault.helps:
        problems.append(f"scale: {finding.scale} in place of {fault.helps}")
    if fault.words not in str(finding):
        problems.append(f"no {fault.words!r}")
    if fault.without and fault.without in str(finding):
        problems.append(f"{fault.without!r}")
    problems += uncured(fault, finding, level, half, sink=sink)
    return [*problems, str(finding)] if problems else []


def uncured(fault: Fault, finding: Any, level: str, half: str, *, sink: bool) -> list[str]:
    """Do what the finding advises; return what is still wrong."""
    def skipped(**options: Any) -> int:
        _, history = train(fault, level, half, sink=sink, explain_overflow=False, **options)
        return int(history["skipped_steps"][0])

    if fault.cure == "to_float":
        network = made(fault)
        cure = getattr(finding, "cure", ()) or (finding.layer,)
        for path in cure:
            if path is None:
                return ["no cure"]
            mixtrain.to_float(layer_at(network, path), mixtrain.float32)
        skips = skipped(network=network, loss_scale_manager=DynamicLossScaleManager(1.0))
        return [] if skips == 0 else [f"to_float of {cure} does not cure"]
    if fault.cure == "scale":
        if finding.scale is None:
            return ["no scale"]
        low, high = (skipped(loss_scale_manager=FixedLossScaleManager(finding.scale * by)) for by in (1.0, 2.0))
        return [] if (low, high) == (0, 1) else [f"scale {finding.scale:g}: skipped {low}, twice: {high}"]
    if fault.cure == "data":
        tame = keras.tree.map_structure(
            lambda part: np.clip(np.nan_to_num(part, posinf=0, neginf=0), -10, 10), fault.batch()
        )
        return [] if skipped(batch=lambda: tame) == 0 else ["other data do not cure"]
    if fault.cure == "network" and fault.cured is not None:
        return [] if skipped(network=fault.cured()) == 0 else ["the other network does not cure"]
    if fault.cure == "rate":
        return [] if skipped(rate=fault.rate / 4096) == 0 else ["a lower rate does not cure"]
    return []
