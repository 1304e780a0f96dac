"""Small networks of the families that public collections of Cells have, in the words that such projects use.

The text runs under MindSpore with its import swapped; that is how the numbers of it were recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import mixtrain as ms
from mixtrain import Parameter, Tensor, nn, ops
from mixtrain.common import initializer as init

CLASSES: Final = 5
STEPS: Final = 3


# ---- what many of them share --------------------------------------------------------------------------------------
def make_divisible(width: float, divisor: int = 4) -> int:
    """Return the multiple of a divisor that is nearest to a width."""
    return max(divisor, int(width + divisor / 2) // divisor * divisor)


class ConvNormActivation(nn.Cell):
    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
        super().__init__()
        self.features = nn.SequentialCell([
            nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=kernel // 2, group=groups),
            nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.9),
        ])
        if activation is not None:
            self.features.append(activation())

    def construct(self, x):
        return self.features(x)


class SqueezeExcite(nn.Cell):
    def __init__(self, channels, reduction=4, gate=nn.Sigmoid):
        super().__init__()
        self.pool = ops.ReduceMean(keep_dims=True)
        self.reduce = nn.Conv2d(channels, channels // reduction, 1, has_bias=True)
        self.act = nn.ReLU()
        self.expand = nn.Conv2d(channels // reduction, channels, 1, has_bias=True)
        self.gate = gate()

    def construct(self, x):
        scale = self.pool(x, (2, 3))
        return x * self.gate(self.expand(self.act(self.reduce(scale))))


class DropPath(nn.Cell):
    """Drops whole samples of a residual branch; here at rate 0, so that numbers can be compared."""

    def __init__(self, drop_prob=0.0):
        super().__init__()
        self.keep_prob = 1.0 - drop_prob
        self.dropout = nn.Dropout(p=drop_prob)

    def construct(self, x):
        if self.keep_prob == 1.0 or not self.training:
            return x
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * self.dropout(ops.ones(shape, x.dtype))


class GlobalAvgPooling(nn.Cell):
    def construct(self, x):
        return ops.mean(x, axis=(2, 3), keep_dims=False)


# ---- plain convolutions -------------------------------------------------------------------------------------------
class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 3, pad_mode="valid")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 2 * 2, 20)
        self.fc2 = nn.Dense(20, CLASSES)

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class AlexNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(3, 8, 5, stride=2, pad_mode="pad", padding=2, has_bias=True), nn.ReLU(),
            nn.MaxPool2d(3, 1), nn.LRN(depth_radius=2, bias=2.0),
            nn.Conv2d(8, 12, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2),
        )
        self.classifier = nn.SequentialCell([
            nn.Dense(12 * 2 * 2, 24), nn.ReLU(), nn.Dropout(p=0.0), nn.Dense(24, CLASSES),
        ])

    def forward_features(self, x):
        x = self.features(x)
        return ops.flatten(x)

    def construct(self, x):
        return self.classifier(self.forward_features(x))


class VGG(nn.Cell):
    def __init__(self, cfg=(8, "M", 12, 12, "M", 16, "M")):
        super().__init__()
        layers, inputs = [], 3
        for v in cfg:
            if v == "M":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            else:
                layers += [nn.Conv2d(inputs, v, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(v), nn.ReLU()]
                inputs = v
        self.features = nn.SequentialCell(layers)
        self.classifier = nn.Dense(16 * 2 * 2, CLASSES)
        for _, cell in self.cells_and_names():
            if isinstance(cell, nn.Dense):
                cell.weight.set_data(init.initializer(init.Normal(0.01), cell.weight.shape, cell.weight.dtype))

    def construct(self, x):
        return self.classifier(self.features(x).reshape(x.shape[0], -1))


class GoogLeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = ConvNormActivation(3, 8, 3, 2)
        self.b1 = ConvNormActivation(8, 4, 1)
        self.b2 = nn.SequentialCell([ConvNormActivation(8, 4, 1), ConvNormActivation(4, 6, 3)])
        self.b3 = nn.SequentialCell([nn.MaxPool2d(3, 1, pad_mode="same"), ConvNormActivation(8, 4, 1)])
        self.pool = GlobalAvgPooling()
        self.fc = nn.Dense(14, CLASSES)

    def construct(self, x):
        x = self.stem(x)
        return self.fc(self.pool(ops.concat((self.b1(x), self.b2(x), self.b3(x)), axis=1)))


# ---- residual and dense -------------------------------------------------------------------------------------------
class BasicBlock(nn.Cell):
    expansion: int = 1

    def __init__(self, in_channels, channels, stride=1, groups=1, base_width=8, down_sample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, pad_mode="pad")
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, pad_mode="pad")
        self.bn2 = nn.BatchNorm2d(channels)
        self.down_sample = down_sample

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.down_sample is not None:
            identity = self.down_sample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Cell):
    expansion: int = 2

    def __init__(self, in_channels, channels, stride=1, groups=1, base_width=8, down_sample=None):
        super().__init__()
        width = int(channels * (base_width / 8.0)) * groups
        self.conv1 = nn.Conv2d(in_channels, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, pad_mode="pad", padding=1, group=groups)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, channels * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(channels * self.expansion)
        self.relu = nn.ReLU()
        self.down_sample = down_sample

    def construct(self, x):
        identity = x if self.down_sample is None else self.down_sample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + identity)


class ResNet(nn.Cell):
    def __init__(self, block, layers, groups=1, base_width=8):
        super().__init__()
        self.input_channels = 8
        self.groups, self.base_with = groups, base_width
        self.conv1 = nn.Conv2d(3, 8, 3, stride=1, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.max_pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = self._make_layer(block, 8, layers[0])
        self.layer2 = self._make_layer(block, 12, layers[1], stride=2)
        self.pool = GlobalAvgPooling()
        self.classifier = nn.Dense(12 * block.expansion, CLASSES)

    def _make_layer(self, block, channels, block_nums, stride=1):
        down_sample = None
        if stride != 1 or self.input_channels != channels * block.expansion:
            down_sample = nn.SequentialCell([
                nn.Conv2d(self.input_channels, channels * block.expansion, kernel_size=1, stride=stride),
                nn.BatchNorm2d(channels * block.expansion),
            ])
        layers = [block(self.input_channels, channels, stride, self.groups, self.base_with, down_sample)]
        self.input_channels = channels * block.expansion
        for _ in range(1, block_nums):
            layers.append(block(self.input_channels, channels, groups=self.groups, base_width=self.base_with))
        return nn.SequentialCell(layers)

    def construct(self, x):
        x = self.max_pool(self.relu(self.bn1(self.conv1(x))))
        return self.classifier(self.pool(self.layer2(self.layer1(x))))


class DenseLayer(nn.Cell):
    def __init__(self, inputs, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, 2 * growth, kernel_size=1, stride=1)
        self.norm2 = nn.BatchNorm2d(2 * growth)
        self.conv2 = nn.Conv2d(2 * growth, growth, kernel_size=3, stride=1, pad_mode="pad", padding=1)

    def construct(self, features):
        x = self.conv1(self.relu1(self.norm1(features)))
        x = self.conv2(ops.relu(self.norm2(x)))
        return ops.concat((features, x), axis=1)


class DenseNet(nn.Cell):
    def __init__(self):
        super().__init__()
        blocks = [nn.Conv2d(3, 8, 3, 2, pad_mode="pad", padding=1)]
        width = 8
        for number in range(2):
            for _ in range(2):
                blocks.append(DenseLayer(width, 4))
                width += 4
            if number == 0:
                blocks += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1), nn.AvgPool2d(2, 2)]
                width //= 2
        self.features = nn.SequentialCell(blocks)
        self.classifier = nn.Dense(width, CLASSES)

    def construct(self, x):
        x = ops.relu(self.features(x))
        return self.classifier(x.mean((2, 3)))


# ---- mobile -------------------------------------------------------------------------------------------------------
class MobileNetV1(nn.Cell):
    def __init__(self):
        super().__init__()
        layers, inputs = [ConvNormActivation(3, 8, 3, 2)], 8
        for outputs, stride in ((8, 1), (16, 2), (16, 1)):
            layers.append(nn.SequentialCell([
                nn.Conv2d(inputs, inputs, 3, stride, pad_mode="pad", padding=1, group=inputs, has_bias=False),
                nn.BatchNorm2d(inputs), nn.ReLU(),
                nn.Conv2d(inputs, outputs, 1, 1, pad_mode="pad", padding=0, has_bias=False),
                nn.BatchNorm2d(outputs), nn.ReLU(),
            ]))
            inputs = outputs
        self.features = nn.SequentialCell(layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Dense(inputs, CLASSES)

    def construct(self, x):
        x = self.pool(self.features(x))
        return self.classifier(x.view(x.shape[0], -1))


class InvertedResidual(nn.Cell):
    def __init__(self, inputs, outputs, stride, expand_ratio, activation=nn.ReLU6, se=False):
        super().__init__()
        hidden = round(inputs * expand_ratio)
        layers = []
        if expand_ratio != 1:
            layers.append(ConvNormActivation(inputs, hidden, 1, activation=activation))
        layers.append(ConvNormActivation(hidden, hidden, 3, stride, hidden, activation))
        if se:
            layers.append(SqueezeExcite(hidden, gate=nn.HSigmoid))
        layers.append(ConvNormActivation(hidden, outputs, 1, activation=None))
        self.layers = nn.SequentialCell(layers)
        self.use_res_connect = stride == 1 and inputs == outputs

    def construct(self, x):
        if self.use_res_connect:
            return x + self.layers(x)
        return self.layers(x)


class MobileNetV2(nn.Cell):
    def __init__(self, activation=nn.ReLU6, se=False, alpha=1.0):
        super().__init__()
        width = make_divisible(8 * alpha)
        layers = [ConvNormActivation(3, width, 3, 2, activation=activation)]
        for t, c, n, s in ((1, 8, 1, 1), (2, 12, 2, 2)):
            outputs = make_divisible(c * alpha)
            for i in range(n):
                layers.append(InvertedResidual(width, outputs, s if i == 0 else 1, t, activation, se and i > 0))
                width = outputs
        self.features = nn.SequentialCell(*layers)
        self.classifier = nn.SequentialCell([nn.Dropout(p=0.0), nn.Dense(width, CLASSES)])

    def construct(self, x):
        return self.classifier(ops.mean(self.features(x), (2, 3)))


class ShuffleV2Block(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride = stride
        half = outputs // 2
        side = inputs if stride == 2 else half
        self.main = nn.SequentialCell([
            nn.Conv2d(side, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
            nn.Conv2d(half, half, 3, stride, pad_mode="pad", padding=1, group=half), nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
        ])
        self.proj = None
        if stride == 2:
            self.proj = nn.SequentialCell([
                nn.Conv2d(inputs, inputs, 3, 2, pad_mode="pad", padding=1, group=inputs), nn.BatchNorm2d(inputs),
                nn.Conv2d(inputs, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
            ])

    @staticmethod
    def channel_shuffle(x):
        batch_size, channels, height, width = x.shape
        x = ops.reshape(x, (batch_size * channels // 2, 2, height * width))
        x = ops.transpose(x, (1, 0, 2))
        x = ops.reshape(x, (2, -1, channels // 2, height, width))
        return x[0], x[1]

    def construct(self, x):
        if self.stride == 1:
            x_proj, x = self.channel_shuffle(x)
            return ops.concat((x_proj, self.main(x)), axis=1)
        return ops.concat((self.proj(x), self.main(x)), axis=1)


class ShuffleNetV2(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first_conv = ConvNormActivation(3, 8, 3, 1)
        self.max_pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.features = nn.CellList([ShuffleV2Block(8, 16, 2), ShuffleV2Block(16, 16, 1), ShuffleV2Block(16, 16, 1)])
        self.classifier = nn.Dense(16, CLASSES, has_bias=False)

    def construct(self, x):
        x = self.max_pool(self.first_conv(x))
        for block in self.features:
            x = block(x)
        return self.classifier(x.mean(axis=(2, 3)))


class MBConv(nn.Cell):
    def __init__(self, inputs, outputs, expand, stride):
        super().__init__()
        hidden = inputs * expand
        self.shortcut = stride == 1 and inputs == outputs
        self.block = nn.SequentialCell([
            ConvNormActivation(inputs, hidden, 1, activation=nn.SiLU),
            ConvNormActivation(hidden, hidden, 3, stride, hidden, nn.SiLU),
            SqueezeExcite(hidden), ConvNormActivation(hidden, outputs, 1, activation=None),
        ])
        self.dropout = DropPath(0.0)

    def construct(self, x):
        result = self.block(x)
        if self.shortcut:
            result = self.dropout(result)
            result += x
        return result


class EfficientNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell([
            ConvNormActivation(3, 8, 3, 2, activation=nn.SiLU), MBConv(8, 12, 2, 2), MBConv(12, 12, 2, 1),
            ConvNormActivation(12, 24, 1, activation=nn.SiLU),
        ])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.mlp_head = nn.Dense(24, CLASSES, weight_init=init.Uniform(0.2))

    def construct(self, x):
        return self.mlp_head(ops.flatten(self.avgpool(self.features(x))))


class RegNet(nn.Cell):
    def __init__(self, widths=(8, 16), depths=(1, 2), group_width=4):
        super().__init__()
        self.stem = ConvNormActivation(3, 8, 3, 2)
        inputs = 8
        for i, (width, depth) in enumerate(zip(widths, depths)):
            stage = nn.SequentialCell()
            for j in range(depth):
                cell = nn.SequentialCell([
                    ConvNormActivation(inputs, width, 1),
                    ConvNormActivation(width, width, 3, 2 if j == 0 else 1, width // group_width),
                    SqueezeExcite(width), ConvNormActivation(width, width, 1, activation=None),
                ])
                stage.append(cell)
                inputs = width
            setattr(self, f"s{i + 1}", stage)
        self.head = nn.Dense(inputs, CLASSES)

    def construct(self, x):
        x = self.s2(self.s1(self.stem(x)))
        return self.head(ops.ReduceMean()(x, (2, 3)))


# ---- attention and kin --------------------------------------------------------------------------------------------
class ConvNextLayerNorm(nn.LayerNorm):
    """LayerNorm over the channels of channels-first pictures."""

    def __init__(self, normalized_shape, epsilon, norm_axis=-1):
        super().__init__(normalized_shape=normalized_shape, epsilon=epsilon)
        self.norm_axis = norm_axis

    def construct(self, input_x):
        if self.norm_axis == -1:
            return super().construct(input_x)
        x = ops.transpose(input_x, (0, 2, 3, 1))
        return ops.transpose(super().construct(x), (0, 3, 1, 2))


class ConvNextBlock(nn.Cell):
    def __init__(self, dim, layer_scale_init_value=1e-2):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=5, group=dim, has_bias=True)
        self.norm = ConvNextLayerNorm((dim,), epsilon=1e-6)
        self.pwconv1 = nn.Dense(dim, 2 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Dense(2 * dim, dim)
        self.gamma_ = Parameter(
            Tensor(layer_scale_init_value * np.ones(dim), dtype=ms.float32), requires_grad=layer_scale_init_value > 0
        )
        self.drop_path = DropPath(0.0)

    def construct(self, x):
        downsample = x
        x = ops.transpose(self.dwconv(x), (0, 2, 3, 1))
        x = self.gamma_ * self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        return downsample + self.drop_path(ops.transpose(x, (0, 3, 1, 2)))


class ConvNeXt(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(
            nn.Conv2d(3, 8, kernel_size=4, stride=4, has_bias=True), ConvNextLayerNorm((8,), 1e-6, norm_axis=1),
        )
        self.stages = nn.SequentialCell([ConvNextBlock(8), ConvNextBlock(8)])
        self.norm = ConvNextLayerNorm((8,), epsilon=1e-6)
        self.classifier = nn.Dense(8, CLASSES)
        for _, cell in self.cells_and_names():
            if isinstance(cell, (nn.Dense, nn.Conv2d)):
                cell.weight.set_data(init.initializer(init.TruncatedNormal(0.02), cell.weight.shape))
                if isinstance(cell, nn.Dense) and cell.bias is not None:
                    cell.bias.set_data(init.initializer(init.Zero(), cell.bias.shape))

    def construct(self, x):
        return self.classifier(self.norm(self.stages(self.stem(x)).mean([-2, -1])))


class Attention(nn.Cell):
    def __init__(self, dim, num_heads=2):
        super().__init__()
        self.num_heads = num_heads
        self.scale = Tensor((dim // num_heads) ** -0.5)
        self.qkv = nn.Dense(dim, dim * 3, has_bias=True)
        self.attn_drop = nn.Dropout(p=0.0)
        self.proj = nn.Dense(dim, dim)
        self.mul, self.q_matmul_k = ops.Mul(), ops.BatchMatMul(transpose_b=True)
        self.attn_matmul_v, self.softmax = ops.BatchMatMul(), nn.Softmax(axis=-1)

    def construct(self, x):
        b, n, c = x.shape
        qkv = ops.transpose(ops.reshape(self.qkv(x), (b, n, 3, self.num_heads, c // self.num_heads)), (2, 0, 3, 1, 4))
        q, k, v = ops.unstack(qkv, axis=0)
        q = self.mul(q, self.scale ** 0.5)
        k = self.mul(k, self.scale ** 0.5)
        attn = self.attn_drop(self.softmax(self.q_matmul_k(q, k)))
        out = ops.reshape(ops.transpose(self.attn_matmul_v(attn, v), (0, 2, 1, 3)), (b, n, c))
        return self.proj(out)


class Mlp(nn.Cell):
    def __init__(self, inputs, hidden, approximate=True):
        super().__init__()
        self.fc1 = nn.Dense(in_channels=inputs, out_channels=hidden)
        self.act = nn.GELU(approximate=approximate)
        self.fc2 = nn.Dense(in_channels=hidden, out_channels=inputs)
        self.drop = nn.Dropout(p=0.0)

    def construct(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class ViTBlock(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm((dim,), epsilon=1e-6)
        self.attn = Attention(dim)
        self.drop_path = DropPath(0.0)
        self.norm2 = nn.LayerNorm((dim,), epsilon=1e-6)
        self.mlp = Mlp(dim, 2 * dim)

    def construct(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Cell):
    def __init__(self, dim=12, patch=4, size=16):
        super().__init__()
        count = (size // patch) ** 2
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch, pad_mode="pad", has_bias=True)
        self.cls_token = Parameter(init.initializer(init.TruncatedNormal(0.02), (1, 1, dim)), name="cls")
        self.pos_embed = Parameter(init.initializer("normal", (1, count + 1, dim), ms.float32))
        self.blocks = nn.CellList([ViTBlock(dim) for _ in range(2)])
        self.norm = nn.LayerNorm((dim,))
        self.head = nn.Dense(dim, CLASSES)

    def construct(self, x):
        x = self.patch_embed(x)
        b, c = x.shape[:2]
        x = x.reshape(b, c, -1).swapaxes(1, 2)
        cls_tokens = ops.broadcast_to(self.cls_token, (b, -1, -1)).astype(x.dtype)
        x = ops.concat((cls_tokens, x), axis=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def window_partition(x, size):
    b, h, w, c = x.shape
    x = ops.reshape(x, (b, h // size, size, w // size, size, c))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, size * size, c))


class SwinBlock(nn.Cell):
    def __init__(self, dim, resolution, size=2, shift=0, num_heads=2):
        super().__init__()
        self.resolution, self.size, self.shift, self.num_heads = resolution, size, shift, num_heads
        self.norm1 = nn.LayerNorm([dim], epsilon=1e-5)
        self.qkv, self.proj = nn.Dense(dim, dim * 3), nn.Dense(dim, dim)
        self.norm2 = nn.LayerNorm([dim], epsilon=1e-5)
        self.mlp = Mlp(dim, 2 * dim, approximate=False)
        coords = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij")).reshape(2, -1)
        relative = (coords[:, :, None] - coords[:, None, :]).transpose(1, 2, 0) + size - 1
        index = relative[..., 0] * (2 * size - 1) + relative[..., 1]
        self.relative_position_index = Tensor(index.reshape(-1), ms.int32)
        self.relative_position_bias_table = Parameter(
            Tensor(np.zeros(((2 * size - 1) ** 2, num_heads)), ms.float32), name="table"
        )
        mask = np.zeros((1, resolution, resolution, 1), np.float32)
        cuts = (slice(0, -size), slice(-size, -shift or None), slice(-shift or resolution, None))
        for number, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
            mask[:, rows, columns, :] = number
        windows = mask.reshape(1, resolution // size, size, resolution // size, size, 1)
        windows = windows.transpose(0, 1, 3, 2, 4, 5).reshape(-1, size * size)
        apart = windows[:, None] - windows[:, :, None]
        self.attn_mask = Tensor(np.where(apart != 0, -100.0, 0.0)[None, :, None], ms.float32) if shift else None

    def attend(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape((b, n, 3, self.num_heads, c // self.num_heads)).transpose((2, 0, 3, 1, 4))
        q, k, v = qkv[0] * (c // self.num_heads) ** -0.5, qkv[1], qkv[2]
        attn = ops.matmul(q, k.swapaxes(-2, -1))
        bias = ops.gather(self.relative_position_bias_table, self.relative_position_index, 0)
        attn = attn + bias.reshape((n, n, -1)).transpose((2, 0, 1)).expand_dims(0)
        if self.attn_mask is not None:
            count = self.attn_mask.shape[1]
            attn = attn.view(b // count, count, self.num_heads, n, n) + self.attn_mask
            attn = attn.view(-1, self.num_heads, n, n)
        attn = ops.softmax(attn, axis=-1)
        return self.proj(ops.matmul(attn, v).transpose((0, 2, 1, 3)).reshape((b, n, c)))

    def construct(self, x):
        b, length, c = x.shape
        side, size = self.resolution, self.size
        shortcut = x
        x = self.norm1(x).reshape((b, side, side, c))
        if self.shift > 0:
            x = ms.numpy.roll(x, (-self.shift, -self.shift), (1, 2))
        windows = self.attend(window_partition(x, size))
        x = windows.reshape((b, side // size, side // size, size, size, c)).transpose((0, 1, 3, 2, 4, 5))
        x = x.reshape((b, side, side, c))
        if self.shift > 0:
            x = ms.numpy.roll(x, (self.shift, self.shift), (1, 2))
        x = shortcut + x.reshape((b, length, c))
        return x + self.mlp(self.norm2(x))


class Swin(nn.Cell):
    def __init__(self, dim=8):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 4, 4, pad_mode="valid", has_bias=True, weight_init="TruncatedNormal")
        self.layers = nn.CellList([SwinBlock(dim, 4), SwinBlock(dim, 4, shift=1)])
        self.merge_norm = nn.LayerNorm([4 * dim])
        self.reduction = nn.Dense(in_channels=4 * dim, out_channels=2 * dim, has_bias=False)
        self.block = SwinBlock(2 * dim, 2)
        self.head = nn.Dense(2 * dim, CLASSES)

    def construct(self, x):
        b = x.shape[0]
        x = self.patch_embed(x).flatten(start_dim=2).permute(0, 2, 1)
        for layer in self.layers:
            x = layer(x)
        c = x.shape[-1]
        x = x.view(b, 2, 2, 2, 2, c).transpose(0, 1, 3, 4, 2, 5).view(b, 4, 4 * c)
        x = self.reduction(self.merge_norm(x))
        return self.head(self.block(x).mean(axis=1))


class MixerBlock(nn.Cell):
    def __init__(self, patches, dim):
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm((dim,)), nn.LayerNorm((dim,))
        self.token_mix, self.channel_mix = Mlp(patches, 8), Mlp(dim, 16)
        self.trans = ops.Transpose()

    def construct(self, x):
        x = x + self.trans(self.token_mix(self.trans(self.token_norm(x), (0, 2, 1))), (0, 2, 1))
        return x + self.channel_mix(self.channel_norm(x))


class MlpMixer(nn.Cell):
    def __init__(self, dim=8):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, kernel_size=4, stride=4, pad_mode="valid", has_bias=True)
        self.mixer_blocks = nn.SequentialCell(*[MixerBlock(16, dim) for _ in range(2)])
        self.layer_norm = nn.LayerNorm((dim,))
        self.head = nn.Dense(dim, CLASSES)

    def construct(self, x):
        x = self.stem(x)
        n, c, h, w = x.shape
        x = x.view((n, c, h * w)).transpose((0, 2, 1))
        return self.head(self.layer_norm(self.mixer_blocks(x)).mean(1))


ZOO: Final[dict[str, Callable[[], Any]]] = {
    "lenet": LeNet5, "alexnet": AlexNet, "vgg": VGG, "googlenet": GoogLeNet,
    "resnet": lambda: ResNet(BasicBlock, (1, 2)), "resnet with bottlenecks": lambda: ResNet(Bottleneck, (1, 1)),
    "resnext": lambda: ResNet(Bottleneck, (1, 1), groups=2, base_width=4), "densenet": DenseNet,
    "mobilenet v1": MobileNetV1, "mobilenet v2": MobileNetV2,
    "mobilenet v3": lambda: MobileNetV2(nn.HSwish, se=True), "shufflenet v2": ShuffleNetV2,
    "efficientnet": EfficientNet, "regnet": RegNet, "convnext": ConvNeXt, "vit": ViT, "swin": Swin,
    "mixer": MlpMixer,
}


def made(name: str) -> Any:
    """Return a network in training mode; its weights are numbers that its name and their order decide."""
    network = ZOO[name]()
    draw = np.random.default_rng(list(name.encode()))
    for parameter in network.trainable_params():
        shape = tuple(parameter.shape)
        scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.2
        around = 1.0 if parameter.name.endswith("gamma") else 0.0
        parameter.set_data(Tensor((around + scale * draw.standard_normal(shape)).astype(np.float32)))
    return network.set_train()


def batch() -> tuple[Any, Any]:
    """Return images and labels."""
    draw = np.random.default_rng(24)
    images = draw.standard_normal((4, 3, 16, 16)).astype(np.float32)
    return Tensor(images), Tensor(draw.integers(0, CLASSES, 4).astype(np.int32))


def trained(name: str) -> dict[str, Any]:
    """Train a network for `STEPS` steps and return what it computed.

    Returns:
        "names" of all parameters, in their order; "output" and "gradients" of the first step, "losses" of each,
        "weights" after the last, moving statistics too: each gradient and parameter as its norm and its product with
        a fixed vector.
    """
    network, (x, y) = made(name), batch()
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9, weight_decay=1e-3)

    def forward(x, y):
        logits = network(x)
        return loss_fn(logits, y), logits

    step = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    result: dict[str, Any] = {"names": np.array([item.name for item in network.get_parameters()]), "losses": []}
    for _ in range(STEPS):
        (loss, logits), grads = step(x, y)
        result.setdefault("output", logits.asnumpy())
        result.setdefault("gradients", np.array([summed(item.asnumpy()) for item in grads]))
        result["losses"].append(float(loss.asnumpy()))
        optimizer(grads)
    weights = np.array([summed(item.asnumpy()) for item in network.get_parameters()])
    return {**result, "losses": np.array(result["losses"]), "weights": weights}


def summed(array: np.ndarray) -> tuple[float, float]:
    """Return an array's norm and its product with a fixed vector."""
    flat = array.astype(np.float64).reshape(-1)
    return float(np.linalg.norm(flat)), float(flat @ np.cos(np.arange(flat.size)))
