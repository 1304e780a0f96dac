"""`MultiheadAttention` gives the numbers of MindSpore 2.10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Tensor, nn
from mixtrain.ops.function.nn_func import multi_head_attention_forward

# Measured on MindSpore 2.10, with weights and inputs sampled as below.
OUTPUT = [
    [[1.09562, 3.94948, -0.32792, 2.98755], [0.24973, 7.01386, -1.99967, 9.56089]],
    [[1.47211, 6.27773, 1.62819, -1.68699], [-0.37878, 6.95487, -1.51673, 9.78812]],
    [[0.23398, 3.14036, -1.42635, 6.12187], [0.79416, 6.98955, -0.62155, 6.78048]],
]
WEIGHTS = [
    [[0.58976, 0.41024], [0.50451, 0.49549], [0.52367, 0.47633]],
    [[0.63673, 0.36327], [0.7489, 0.2511], [0.58152, 0.41848]],
]
MASKED_FIRST = [4.00961, 3.45527, 0.97191, -2.20547]


def network_and_inputs(**options: bool) -> tuple[nn.MultiheadAttention, list[Tensor]]:
    rng = np.random.default_rng(3)
    net = nn.MultiheadAttention(4, 2, **options)
    for parameter, shape in (
        (net.in_proj_weight, (12, 4)), (net.in_proj_bias, (12,)), (net.out_proj.weight, (4, 4)),
        (net.out_proj.bias, (4,)),
    ):
        parameter.set_data(Tensor(rng.standard_normal(shape).astype(np.float32)))
    return net, [Tensor(rng.standard_normal((n, 2, 4)).astype(np.float32)) for n in (3, 2, 2)]


def test_output_and_weights_are_the_references() -> None:
    net, inputs = network_and_inputs()
    output, weights = net(*inputs)
    np.testing.assert_allclose(output.asnumpy(), OUTPUT, atol=2e-5)
    np.testing.assert_allclose(weights.asnumpy(), WEIGHTS, atol=2e-5)
    assert [parameter.name for parameter in net.get_parameters()] == [
        "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"
    ]


def test_masked_keys_are_left_out() -> None:
    net, inputs = network_and_inputs()
    output, weights = net(*inputs, key_padding_mask=Tensor(np.array([[False, True], [False, False]])))
    np.testing.assert_allclose(output.asnumpy()[:, 0], [MASKED_FIRST] * 3, atol=2e-5)
    np.testing.assert_allclose(weights.asnumpy()[0, :, 0], 1, rtol=1e-6)
    assert not weights.asnumpy()[0, :, 1].any()
    blocked = Tensor(np.array([[False, True]] * 3))
    np.testing.assert_allclose(net(*inputs, attn_mask=blocked)[0].asnumpy()[:, 0], [MASKED_FIRST] * 3, atol=2e-5)


def test_batch_first_and_single_samples_are_the_same_numbers() -> None:
    net, inputs = network_and_inputs(batch_first=True)
    output, none = net(*(x.swapaxes(0, 1) for x in inputs), need_weights=False)
    np.testing.assert_allclose(output.asnumpy().swapaxes(0, 1), OUTPUT, atol=2e-5)
    single, _ = net(*(x[:, 0] for x in inputs))
    assert none is None
    np.testing.assert_allclose(single.asnumpy(), np.array(OUTPUT)[:, 0], atol=2e-5)


@pytest.mark.slow
def test_it_computes_in_half_and_trains() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(4, 2, batch_first=True), nn.Dense(4, 2)

        def construct(self, x: Tensor) -> Tensor:
            return self.head(self.attention(x, x, x)[0].mean(1))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 3, 4)).astype(np.float32)
    net = Net()
    model = ms.Model(
        net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.05), amp_level="O2", loss_scale_manager=None
    )
    history = model.train(8, [(x, (x[:, 0, 0] > 0).astype(np.int32))], verbose=0)
    assert history["loss"][-1] < history["loss"][0]


OPTIONS = [
    {"kdim": 6, "vdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"vdim": 2, "has_bias": False},
    {"kdim": 6, "add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
]
# The sums of outputs and of weights by position, and their last output, measured on MindSpore 2.10.
EXPECTED = [
    (-37.18165, 88.30707, 2.97754),
    (13.56694, 108.46497, 6.01154),
    (-23.79111, 109.96777, 4.55490),
    (0.63447, 89.15057, -0.09939),
    (-2.60824, 125.39802, 3.70459),
]


@pytest.mark.parametrize(("options", "expected"), [*zip(OPTIONS, EXPECTED, strict=True)])
def test_keys_of_other_features_and_appended_ones_are_the_references(
    options: dict[str, Any], expected: tuple[float, float, float]
) -> None:
    net = nn.MultiheadAttention(4, 2, **options)
    rng = np.random.default_rng(0)
    for parameter in sorted(net.get_parameters(), key=lambda each: each.name):
        parameter.set_data(Tensor(rng.standard_normal(parameter.shape).astype(np.float32)))
    inputs = [
        Tensor(rng.standard_normal((count, 2, size)).astype(np.float32))
        for count, size in ((3, 4), (5, options.get("kdim", 4)), (5, options.get("vdim", 4)))
    ]
    inputs = [x.swapaxes(0, 1) for x in inputs] if "batch_first" in options else inputs
    ignored, hidden = np.array([[False] * 5, [True] + [False] * 4]), np.triu(np.ones((3, 5)), 2).astype(bool)
    output, weights = net(*inputs, key_padding_mask=Tensor(ignored), attn_mask=Tensor(hidden))
    places = np.arange(1, weights.asnumpy().size + 1)
    got = output.asnumpy().sum(), (weights.asnumpy().reshape(-1) * places).sum(), output.asnumpy().reshape(-1)[-1]
    np.testing.assert_allclose(got, expected, atol=2e-4)


def test_the_function_computes_what_the_layer_of_its_parameters_does() -> None:
    net, inputs = network_and_inputs()
    weight, bias = net.in_proj_weight, net.in_proj_bias
    parts = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weight.split(4), strict=True))
    for packed, separate in ((weight, {}), (None, {"use_separate_proj_weight": True, **parts})):
        output, shares = multi_head_attention_forward(
            *inputs, 4, 2, packed, bias, None, None, False, 0.0, net.out_proj.weight, net.out_proj.bias, **separate
        )
        np.testing.assert_allclose(output.asnumpy(), OUTPUT, atol=2e-5)
        np.testing.assert_allclose(shares.asnumpy(), WEIGHTS, atol=2e-5)
    with pytest.raises(ValueError, match="is_causal must be False"):
        multi_head_attention_forward(
            *inputs, 4, 2, weight, bias, None, None, False, 0.0, net.out_proj.weight, None, is_causal=True
        )


def test_what_is_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="num_heads must divide embed_dim"):
        nn.MultiheadAttention(4, 3)
