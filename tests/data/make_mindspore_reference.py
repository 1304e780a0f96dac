"""Writes mindspore_reference.npz: inputs and outputs of layers, losses and optimizers, by MindSpore 2.10 on the CPU.

Keys read 'case/name'; all arrays are float32, integer labels aside (int32). MindSpore is needed to run this, not to
run the tests. Usage: python make_mindspore_reference.py [output.npz]
"""

import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

SEED = 20240607
STEPS = 5                    # optimizer steps

store = {}


def put(case, **arrays):
    """Keep arrays under 'case/name', floats as float32."""
    for name, value in arrays.items():
        if isinstance(value, Tensor):
            value = value.asnumpy()
        value = np.array(value)
        store[f"{case}/{name}"] = value.astype(np.int32 if value.dtype.kind in "iu" else np.float32)


def rand(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def conv2d(rng):
    cases = {
        "same": dict(pad_mode="same"),
        "same_k2": dict(pad_mode="same", kernel_size=2),
        "same_s2": dict(pad_mode="same", stride=2),
        "same_s2_k4": dict(pad_mode="same", stride=2, kernel_size=4),
        "same_d2": dict(pad_mode="same", dilation=2),
        "valid": dict(pad_mode="valid"),
        "valid_s2_d2": dict(pad_mode="valid", stride=2, dilation=2),
        "pad_1": dict(pad_mode="pad", padding=1),
        "pad_tblr": dict(pad_mode="pad", padding=(1, 0, 2, 3)),       # top, bottom, left, right
        "pad_s2_d2": dict(pad_mode="pad", padding=2, stride=2, dilation=2),
        "group2": dict(pad_mode="same", group=2),
        "rect": dict(pad_mode="same", kernel_size=(2, 3), stride=(1, 2)),
        "nobias": dict(pad_mode="same", has_bias=False),
    }
    for name, options in cases.items():
        options = {"kernel_size": 3, "has_bias": True, **options}
        net = nn.Conv2d(4, 6, **options)
        x, w = rand(rng, 2, 4, 6, 7), rand(rng, *net.weight.shape)
        net.weight.set_data(Tensor(w))
        case = f"conv2d_{name}"
        put(case, x=x, weight=w)
        if options["has_bias"]:
            b = rand(rng, 6)
            net.bias.set_data(Tensor(b))
            put(case, bias=b)
        put(case, y=net(Tensor(x)))


def dense(rng):
    for name, shape, options in (("plain", (5, 4), {}), ("nobias", (5, 4), {"has_bias": False}),
                                 ("rank3", (2, 3, 4), {}), ("relu", (5, 4), {"activation": "relu"})):
        net = nn.Dense(4, 3, **options)
        x, w = rand(rng, *shape), rand(rng, 3, 4)
        net.weight.set_data(Tensor(w))
        put(f"dense_{name}", x=x, weight=w)
        if net.has_bias:
            b = rand(rng, 3)
            net.bias.set_data(Tensor(b))
            put(f"dense_{name}", bias=b)
        put(f"dense_{name}", y=net(Tensor(x)))


def batch_norm(rng):
    """Two training steps, then one pass in evaluation mode."""
    for name, cls, shape in (("2d", nn.BatchNorm2d, (4, 3, 2, 3)), ("1d", nn.BatchNorm1d, (6, 3)),
                             ("1d_rank3", nn.BatchNorm1d, (4, 3, 5))):
        case, net = f"batchnorm{name}", cls(3, momentum=0.9)
        gamma, beta = rand(rng, 3), rand(rng, 3)
        net.gamma.set_data(Tensor(gamma))
        net.beta.set_data(Tensor(beta))
        put(case, gamma=gamma, beta=beta)
        net.set_train(True)
        for step in (1, 2):
            x = rand(rng, *shape) * 2 + 1
            y = net(Tensor(x))
            put(case, **{f"train_x{step}": x, f"train_y{step}": y,
                         f"moving_mean{step}": net.moving_mean.value(),
                         f"moving_variance{step}": net.moving_variance.value()})
        net.set_train(False)
        x = rand(rng, *shape)
        put(case, eval_x=x, eval_y=net(Tensor(x)))


def layer_norm(rng):
    for name, norm_shape, axis in (("last", (4,), -1), ("last2", (3, 4), 1)):
        net = nn.LayerNorm(norm_shape, begin_norm_axis=axis, begin_params_axis=axis)
        x, gamma, beta = rand(rng, 2, 3, 4), rand(rng, *norm_shape), rand(rng, *norm_shape)
        net.gamma.set_data(Tensor(gamma))
        net.beta.set_data(Tensor(beta))
        put(f"layernorm_{name}", x=x, gamma=gamma, beta=beta, y=net(Tensor(x)))


def pooling(rng):
    common = {"valid": ((3, 2), {"pad_mode": "valid"}), "same": ((3, 2), {"pad_mode": "same"}),
              "same_k2_s1": ((2, 1), {"pad_mode": "same"}), "same_k2_s2": ((2, 2), {"pad_mode": "same"}),
              "pad": ((3, 2), {"pad_mode": "pad", "padding": 1}),
              "pad_ceil": ((2, 2), {"pad_mode": "pad", "padding": 1, "ceil_mode": True})}
    average = {"pad_exclude": ((3, 2), {"pad_mode": "pad", "padding": 1, "count_include_pad": False}),
               "valid_ceil": ((2, 2), {"pad_mode": "valid", "ceil_mode": True}),
               "divisor": ((3, 2), {"pad_mode": "pad", "padding": 1, "divisor_override": 2})}
    for kind, cls, cases in (("maxpool2d", nn.MaxPool2d, common), ("avgpool2d", nn.AvgPool2d, {**common, **average})):
        for name, (size, options) in cases.items():
            x = rand(rng, 2, 2, 5, 7) - 2                # mostly negative: padding with zero would show
            net = cls(kernel_size=size[0], stride=size[1], **options)
            put(f"{kind}_{name}", x=x, y=net(Tensor(x)))


def activations(rng):
    x = rand(rng, 4, 9) * 4
    for name, net in (("gelu_tanh", nn.GELU(True)), ("gelu_erf", nn.GELU(False)), ("relu", nn.ReLU()),
                      ("relu6", nn.ReLU6()), ("sigmoid", nn.Sigmoid()), ("tanh", nn.Tanh()),
                      ("softmax", nn.Softmax()), ("softmax_axis0", nn.Softmax(0))):
        put(name, x=x, y=net(Tensor(x)))


def losses(rng):
    """Each loss with each reduction; 'g' is the gradient by the first input of the summed loss."""
    n, c = 6, 4
    logits, other = rand(rng, n, c), rand(rng, n, c)
    labels = np.array([0, 3, 1, 2, 3, 0], np.int32)
    ignored = np.array([0, -100, 1, 2, -100, 0], np.int32)
    one_hot = np.eye(c, dtype=np.float32)[labels]
    soft = rng.dirichlet(np.ones(c), n).astype(np.float32)
    weight = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    prob = (1 / (1 + np.exp(-logits))).astype(np.float32)
    target = (other > 0).astype(np.float32)
    element = np.abs(rand(rng, n, c))
    sce, ce = nn.SoftmaxCrossEntropyWithLogits, nn.CrossEntropyLoss
    w = Tensor(weight)
    cases = {
        "sce_sparse": (lambda r: sce(sparse=True, reduction=r), logits, labels, {}),
        "sce_onehot": (lambda r: sce(sparse=False, reduction=r), logits, one_hot, {}),
        "sce_soft": (lambda r: sce(sparse=False, reduction=r), logits, soft, {}),
        "ce_sparse": (lambda r: ce(reduction=r), logits, labels, {}),
        "ce_soft": (lambda r: ce(reduction=r), logits, soft, {}),
        "ce_ignore": (lambda r: ce(reduction=r), logits, ignored, {}),
        "ce_ignore3": (lambda r: ce(reduction=r, ignore_index=3), logits, labels, {}),
        "ce_smooth": (lambda r: ce(reduction=r, label_smoothing=0.1), logits, labels, {}),
        "ce_smooth_soft": (lambda r: ce(reduction=r, label_smoothing=0.1), logits, soft, {}),
        "ce_weight": (lambda r: ce(w, reduction=r), logits, labels, {"weight": weight}),
        "ce_weight_soft": (lambda r: ce(w, reduction=r), logits, soft, {"weight": weight}),
        "ce_weight_smooth_ignore": (lambda r: ce(w, reduction=r, label_smoothing=0.1), logits, ignored,
                                    {"weight": weight}),
        "ce_image": (lambda r: ce(reduction=r), rand(rng, 2, c, 2, 3),
                     rng.integers(0, c, (2, 2, 3)).astype(np.int32), {}),
        "mse": (nn.MSELoss, logits, other, {}),
        "l1": (nn.L1Loss, logits, other, {}),
        "bce": (lambda r: nn.BCELoss(reduction=r), prob, target, {}),
        "bce_weight": (lambda r: nn.BCELoss(Tensor(element), r), prob, target, {"weight": element}),
        "bcelogits": (nn.BCEWithLogitsLoss, logits, target, {}),
        "bcelogits_weight": (lambda r: nn.BCEWithLogitsLoss(r, Tensor(element), w), logits, target,
                             {"weight": element, "pos_weight": weight}),
    }
    for name, (make, x, y, extra) in cases.items():
        case = f"loss_{name}"
        put(case, x=x, label=y, **extra)
        for reduction in ("none", "mean", "sum"):
            loss = make(reduction)
            value, grad = ms.value_and_grad(lambda a, fn=loss, b=Tensor(y): fn(a, b).sum())(Tensor(x))
            put(case, **{reduction: loss(Tensor(x), Tensor(y)), f"g_{reduction}": grad})
            assert np.isfinite(value.asnumpy())


def optimizers(rng):
    """Five steps on 'fc.weight' and 'bn.gamma'; 'fc.weight' and 'bn.gamma' hold one row per step."""
    start = {"fc.weight": rand(rng, 2, 3), "bn.gamma": rand(rng, 3)}
    grads = {name: rand(rng, STEPS, *value.shape) for name, value in start.items()}
    lrs = [0.1, 0.05, 0.2, 0.01, 0.03]
    put("optim", **{f"start_{name}": value for name, value in start.items()})
    put("optim", **{f"grad_{name}": value for name, value in grads.items()}, lr_list=lrs)
    mom, sgd, adam, adamw = nn.Momentum, nn.SGD, nn.Adam, nn.AdamWeightDecay
    m9 = {"momentum": 0.9}

    def two_groups(params):
        return [{"params": [params[1]], "lr": 0.5, "weight_decay": 0.02}, {"params": [params[0]]},
                {"order_params": params}]

    cases = {}
    for name, cls, base in (("momentum", mom, m9), ("sgd", sgd, {}), ("sgd_m", sgd, m9), ("adam", adam, {}),
                            ("adamw", adamw, {})):
        cases[name] = (cls, None, base)
        cases[f"{name}_decay"] = (cls, None, {**base, "weight_decay": 0.1})
        cases[f"{name}_lrlist"] = (cls, None, {**base, "learning_rate": lrs})
        cases[f"{name}_groups"] = (cls, two_groups, {**base, "weight_decay": 0.1})
        if cls is not adamw:
            cases[f"{name}_scale8"] = (cls, None, {**base, "weight_decay": 0.1, "loss_scale": 8.0})
    cases["momentum_nesterov"] = (mom, None, {**m9, "use_nesterov": True})   # the CPU kernel: same as plain
    cases["sgd_m_nesterov"] = (sgd, None, {**m9, "nesterov": True})
    cases["sgd_m_nesterov_decay"] = (sgd, None, {**m9, "nesterov": True, "weight_decay": 0.1})
    cases["sgd_m_damp"] = (sgd, None, {**m9, "dampening": 0.3})
    cases["sgd_damp"] = (sgd, None, {"dampening": 0.3})
    cases["adam_nesterov"] = (adam, None, {"use_nesterov": True})
    cases["adam_amsgrad"] = (adam, None, {"use_amsgrad": True, "beta2": 0.5})
    cases["adam_eps"] = (adam, None, {"eps": 0.1})
    cases["adamw_eps"] = (adamw, None, {"eps": 0.1})
    for name, (cls, group, options) in cases.items():
        params = [Parameter(Tensor(value), name=key) for key, value in start.items()]
        options = {"learning_rate": 0.1, **options}
        optimizer = cls(group(params) if group else params, **options)
        rows = {key: [] for key in start}
        for step in range(STEPS):
            optimizer(tuple(Tensor(grads[p.name][step]) for p in params))
            for p in params:
                rows[p.name].append(p.asnumpy().copy())
        put(f"optim_{name}", **rows)


def main():
    ms.set_seed(SEED)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    rng = np.random.default_rng(SEED)
    for part in (conv2d, dense, batch_norm, layer_norm, pooling, activations, losses, optimizers):
        part(rng)
    beside = pathlib.Path(__file__).with_name("mindspore_reference.npz")
    target = sys.argv[1] if len(sys.argv) > 1 else beside
    np.savez_compressed(target, **store)
    print(len(store), "arrays in", target)


if __name__ == "__main__":
    main()
