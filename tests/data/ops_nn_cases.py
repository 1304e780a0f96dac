"""The cases of ops_nn_reference.npz: functions of an `ops` module, MindSpore's or mixtrain's, and their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], list[np.ndarray]]


def cases() -> dict[str, Case]:
    """Return name -> (function of an ops module and tensors, NumPy inputs)."""
    rng = np.random.default_rng(20260101)
    return {**_activations(rng), **_losses(rng), **_images(rng), **_boxes(rng), **_clipped(rng)}


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _activations(rng: np.random.Generator) -> dict[str, Case]:
    # Within 3: beyond, the reference's tanh is off by 6e-5.
    x = np.clip(2 * _floats(rng, 3, 4), -2.9, 2.9)
    names = (
        "relu", "relu6", "sigmoid", "tanh", "softmax", "log_softmax", "gelu", "hardswish", "hardsigmoid", "elu", "selu",
        "celu", "softplus", "softsign", "mish", "silu", "logsigmoid", "leaky_relu", "hardtanh", "hardshrink",
        "softshrink", "softmin", "tanhshrink", "fast_gelu", "glu",
    )
    result: dict[str, Case] = {name: (lambda ops, x, name=name: getattr(ops, name)(x), [x]) for name in names}
    primitives = (
        "ReLU", "ReLU6", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "GeLU", "HSwish", "HSigmoid", "Elu", "SeLU",
        "Softplus", "Softsign", "Mish", "FastGeLU",
    )
    result |= {name: (lambda ops, x, name=name: getattr(ops, name)()(x), [x]) for name in primitives}
    result["gelu_tanh"] = lambda ops, x: ops.gelu(x, "tanh"), [x]
    result["softplus_beta"] = lambda ops, x: ops.softplus(x, 2, 1), [x]
    result["celu_alpha"] = lambda ops, x: ops.celu(x, 2.0), [x]
    result["hardtanh_limits"] = lambda ops, x: ops.hardtanh(x, -0.5, 2.0), [x]
    result["threshold"] = lambda ops, x: ops.threshold(x, 0.1, -2.0), [x]
    result["Softmax_axis0"] = lambda ops, x: ops.Softmax(axis=0)(x), [x]
    result["Softmax_tuple"] = lambda ops, x: ops.Softmax((0,))(x), [x]
    result["LogSoftmax_axis0"] = lambda ops, x: ops.LogSoftmax(0)(x), [x]
    result["prelu"] = lambda ops, x, w: ops.prelu(x, w), [_floats(rng, 2, 3, 2), np.array([0.1, 0.2, 0.3], np.float32)]
    result["prelu_one"] = lambda ops, x, w: ops.PReLU()(x, w), [x, np.array([0.1], np.float32)]
    result["L2Normalize"] = lambda ops, x: ops.L2Normalize()(x), [x]
    result["L2Normalize_last"] = lambda ops, x: ops.L2Normalize(axis=-1, epsilon=1e-12)(x), [x]
    return result


def _losses(rng: np.random.Generator) -> dict[str, Case]:
    x, y, unit = _floats(rng, 4, 3), _floats(rng, 4, 3), rng.uniform(0.05, 0.95, (4, 3)).astype(np.float32)
    hot, numbers = np.eye(3, dtype=np.float32)[[0, 2, 1, 2]], np.array([0, 2, 1, 2], np.int32)
    logs, weight = np.log(unit / unit.sum(1, keepdims=True)), np.array([1.0, 2.0, 3.0], np.float32)
    image, pixels = _floats(rng, 2, 3, 2), np.array([[0, 2], [1, 1]], np.int32)
    result: dict[str, Case] = {
        "SoftmaxCE": (lambda ops, x, y: ops.SoftmaxCrossEntropyWithLogits()(x, y), [x, hot]),
        "SparseCE": (lambda ops, x, y: ops.SparseSoftmaxCrossEntropyWithLogits()(x, y), [x, numbers]),
        "SparseCE_grad": (
            lambda ops, x, y: ops.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(x, y), [x, numbers]
        ),
        "SigmoidCE": (lambda ops, x, y: ops.SigmoidCrossEntropyWithLogits()(x, y), [x, hot]),
        "SmoothL1Loss": (lambda ops, x, y: ops.SmoothL1Loss()(x, y), [x, y]),
        "SmoothL1Loss_sum": (lambda ops, x, y: ops.SmoothL1Loss(0.5, "sum")(x, y), [x, y]),
        "smooth_l1_loss": (lambda ops, x, y: ops.smooth_l1_loss(x, y, 0.5, "mean"), [x, y]),
        "huber_loss": (lambda ops, x, y: ops.huber_loss(x, y, "none", 0.5), [x, y]),
        "cross_entropy_smooth": (
            lambda ops, x, y, w: ops.cross_entropy(x, y, w, 1, "mean", 0.1), [x, numbers, weight]
        ),
        "cross_entropy_soft": (lambda ops, x, y: ops.cross_entropy(x, y, label_smoothing=0.1), [x, hot]),
        "cross_entropy_image": (lambda ops, x, y: ops.cross_entropy(x, y, reduction="none"), [image, pixels]),
        "nll_loss_smooth": (
            lambda ops, x, y, w: ops.nll_loss(x, y, w, reduction="none", label_smoothing=0.1), [logs, numbers, weight]
        ),
        "nll_loss_ignore": (lambda ops, x, y: ops.nll_loss(x, y, ignore_index=2), [logs, numbers]),
        "NLLLoss": (lambda ops, x, y, w: ops.NLLLoss()(x, y, w), [logs, numbers, weight]),
        "bce_weight": (lambda ops, x, y, w: ops.binary_cross_entropy(x, y, w, "sum"), [unit, hot, unit]),
        "BinaryCrossEntropy": (lambda ops, x, y: ops.BinaryCrossEntropy()(x, y), [unit, hot]),
        "bce_logits_weights": (
            lambda ops, x, y, w, p: ops.binary_cross_entropy_with_logits(x, y, w, p, "none"), [x, hot, weight, weight]
        ),
        "BCEWithLogitsLoss": (lambda ops, x, y, w, p: ops.BCEWithLogitsLoss()(x, y, w, p), [x, hot, unit, unit]),
        "kl_div": (lambda ops, x, y: ops.kl_div(x, y, "batchmean"), [logs, unit]),
        "KLDivLoss": (lambda ops, x, y: ops.KLDivLoss("sum")(x, y), [logs, hot]),
        "L2Loss": (lambda ops, x: ops.L2Loss()(x), [x]),
    }
    for name in ("mse_loss", "l1_loss"):
        result[name] = lambda ops, x, y, name=name: getattr(ops, name)(x, y), [x, y]
        result[f"{name}_none"] = lambda ops, x, y, name=name: getattr(ops, name)(x, y, "none"), [x, y[:1]]
    for name, values in (("cross_entropy", x), ("nll_loss", logs)):
        for how in ("mean", "sum", "none"):
            result[f"{name}_{how}"] = (
                lambda ops, x, y, w, name=name, how=how: getattr(ops, name)(x, y, w, reduction=how),
                [values, numbers, weight],
            )
    return result


def _images(rng: np.random.Generator) -> dict[str, Case]:
    x, w, b = _floats(rng, 2, 4, 6, 7), _floats(rng, 6, 4, 3, 3), _floats(rng, 6)
    small = _floats(rng, 1, 2, 4, 5)
    result: dict[str, Case] = {
        "BiasAdd": (lambda ops, x, b: ops.BiasAdd()(x, b), [w, b[:4]]),
        "bias_add": (lambda ops, x, b: ops.bias_add(x, b), [_floats(rng, 3, 6), b]),
        "Conv2D": (lambda ops, x, w: ops.Conv2D(6, 3)(x, w), [x, w]),
        "Conv2D_pad": (lambda ops, x, w: ops.Conv2D(6, 3, 1, "pad", (1, 0, 2, 1), 2)(x, w), [x, w]),
        "Conv2D_same": (lambda ops, x, w: ops.Conv2D(6, (3, 3), pad_mode="same", stride=2)(x, w), [x, w]),
        "conv2d": (lambda ops, x, w, b: ops.conv2d(x, w, b, 1, "pad", 1, 2), [x, w, b]),
        "conv2d_group": (lambda ops, x, w: ops.conv2d(x, w, groups=2, pad_mode="same"), [x, w[:, :2].copy()]),
        "MaxPool": (lambda ops, x: ops.MaxPool(2, 2)(x), [x]),
        "MaxPool_same": (lambda ops, x: ops.MaxPool(kernel_size=3, strides=2, pad_mode="SAME")(x), [x]),
        "AvgPool": (lambda ops, x: ops.AvgPool(2, 2)(x), [x]),
        "AvgPool_same": (lambda ops, x: ops.AvgPool(3, 2, "same")(x), [x]),
        "MaxPoolWithArgmax": (lambda ops, x: ops.MaxPoolWithArgmax(2, 2)(x), [x]),
        "MaxPoolWithArgmax_same": (lambda ops, x: ops.MaxPoolWithArgmax(3, 2, "same")(x), [x]),
        "max_pool2d_indices": (lambda ops, x: ops.max_pool2d(x, 3, 2, 1, 1, True), [x]),
        "avg_pool2d_pad": (lambda ops, x: ops.avg_pool2d(x, 3, 2, 1, False, False), [x]),
        "avg_pool2d_divisor": (lambda ops, x: ops.avg_pool2d(x, 2, 2, divisor_override=3), [x]),
        "adaptive_avg_pool2d": (lambda ops, x: ops.adaptive_avg_pool2d(x, (3, 4)), [x]),
        "adaptive_avg_pool2d_none": (lambda ops, x: ops.adaptive_avg_pool2d(x, (None, 2)), [x]),
        "ResizeBilinear": (lambda ops, x: ops.ResizeBilinear((3, 9))(x), [small]),
        "ResizeBilinear_corners": (lambda ops, x: ops.ResizeBilinear((3, 9), True)(x), [small]),
        "ResizeBilinear_centres": (lambda ops, x: ops.ResizeBilinear((3, 9), False, True)(x), [small]),
        "ResizeNearest": (lambda ops, x: ops.ResizeNearestNeighbor((3, 9))(x), [small]),
        "ResizeNearest_corners": (lambda ops, x: ops.ResizeNearestNeighbor((3, 9), align_corners=True)(x), [small]),
        "interpolate_corners": (lambda ops, x: ops.interpolate(x, (3, 9), None, "bilinear", True), [small]),
        "interpolate_scale": (
            lambda ops, x: ops.interpolate(x, None, (1.6, 1.6), "bilinear", recompute_scale_factor=True), [small]
        ),
        "interpolate_linear": (lambda ops, x: ops.interpolate(x, 7, mode="linear"), [small[0]]),
    }
    for mode in ("nearest", "nearest-exact", "bilinear", "area"):
        result[f"interpolate_{mode}"] = lambda ops, x, mode=mode: ops.interpolate(x, (3, 9), mode=mode), [small]
    return result


def _boxes(rng: np.random.Generator) -> dict[str, Case]:
    corner, size = rng.uniform(0, 40, (8, 2)), rng.uniform(3, 30, (8, 2))
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    others, offsets = boxes[::-1].copy() + 2, 0.4 * _floats(rng, 8, 4)
    scores = rng.permutation(8).astype(np.float32)[:, None] / 8
    scored = np.concatenate([boxes // 8 * 8, scores], 1)
    features, which = _floats(rng, 2, 3, 6, 7), np.arange(8, dtype=np.float32)[:, None] % 2
    rois = np.concatenate([which, boxes / 8], 1).astype(np.float32)
    means, stds = (0.1, 0.1, 0.2, 0.2), (0.5, 0.5, 0.3, 0.3)
    result: dict[str, Case] = {
        "IOU": (lambda ops, x, y: ops.IOU()(x, y), [boxes, others[:3].copy()]),
        "IOU_iof": (lambda ops, x, y: ops.IOU("iof")(x, y), [boxes, others[:3].copy()]),
        "BoundingBoxEncode": (lambda ops, x, y: ops.BoundingBoxEncode(means, stds)(x, y), [boxes, others]),
        "BoundingBoxDecode": (
            lambda ops, x, y: ops.BoundingBoxDecode((50, 60), means, stds)(x, y), [boxes, offsets]
        ),
        "BoundingBoxDecode_clip": (
            lambda ops, x, y: ops.BoundingBoxDecode(max_shape=(768, 1280), wh_ratio_clip=0.9)(x, y), [boxes, offsets]
        ),
        "CheckValid": (lambda ops, x, y: ops.CheckValid()(x, y), [boxes, np.array([20.0, 22.0, 2.0], np.float32)]),
    }
    for limit in (0.1, 0.3, 0.6):
        result[f"NMSWithMask_{limit}"] = lambda ops, x, limit=limit: ops.NMSWithMask(limit)(x), [scored]
    for mode in (0, 1):
        result[f"ROIAlign_{mode}"] = (
            lambda ops, x, r, mode=mode: ops.ROIAlign(2, 3, 0.8, 2, mode)(x, r), [features, rois]
        )
    return result


def _clipped(rng: np.random.Generator) -> dict[str, Case]:
    x, y = _floats(rng, 3, 2), _floats(rng, 4)
    return {
        "clip_by_global_norm": (lambda ops, x, y: ops.clip_by_global_norm((x, y), 0.5), [x, y]),
        "clip_by_global_norm_small": (lambda ops, x, y: ops.clip_by_global_norm((x, y), 100.0), [x, y]),
    }
