"""What users write for each row of the operator table, as text: ``call``, or ``what is built << its arguments``.

The names in an expression: x, z (2, 4), y (4, 3), v (4,), sq (4, 4), s (2, 5, 4), b, c batches of matrices, image
(N, C, H, W) and pixels (N, H, W, C) with their kernels; i integer labels, hot one-hot labels, p probabilities. In cases
of "half" they are float32, in cases of "float32" and "inputs" half; `other` is float32 in cases of "promote".
"""

from __future__ import annotations

HALF = """
x @ y
w @ y
x.matmul(y)
ops.matmul(w, y)
ops.matmul(x, y)
ops.bmm(b, c)
ops.BatchMatMul()(b, c)
ops.MatMul()(x, y)
ops.mm(x, y)
ops.mv(x, v)
ops.dot(x, y)
ops.outer(v, v)
ops.einsum("ij,jk->ik", x, y)
ops.tensor_dot(x, y, 1)
ops.addmm(x @ sq, x, sq)
ops.baddbmm(b @ c, b, c)
ops.conv2d(image, kernel)
ops.Conv2D(4, 3)(image, kernel)
ops.bias_add(x, v)
ops.BiasAdd()(x, v)
ops.prelu(image, channel)
K.matmul(x, y)
K.dot(x, y)
K.vdot(v, v)
K.inner(v, v)
K.outer(v, v)
K.einsum("ij,jk->ik", x, y)
K.tensordot(x, y, 1)
K.nn.conv(pixels, last_kernel)
K.conv(pixels, last_kernel)
K.conv_transpose(pixels, last_kernel_back, 1)
K.depthwise_conv(pixels, depth_kernel)
K.separable_conv(pixels, depth_kernel, point_kernel)
K.dot_product_attention(heads, heads, heads)
nn.Dense(4, 3) << x
nn.Conv1d(5, 2, 3, has_bias=True) << s
nn.Conv2d(3, 4, 3) << image
nn.Conv3d(2, 2, 2, has_bias=True) << volume
nn.Conv1dTranspose(5, 2, 3) << s
nn.Conv2dTranspose(3, 4, 3) << image
nn.Conv3dTranspose(2, 2, 2) << volume
nn.MatMul() << x, y
nn.PReLU() << image
nn.LSTM(4, 3) << s
nn.GRU(4, 3) << s
nn.RNN(4, 3) << s
nn.RNNCell(4, 3) << x, ops.matmul(x, y)
nn.GRUCell(4, 3) << x, ops.matmul(x, y)
nn.LSTMCell(4, 3) << x, (ops.matmul(x, y), ops.matmul(x, y))
L.Dense(3) << x
L.EinsumDense("ab,bc->ac", 3) << x
L.Dot(1) << [x, z]
L.Conv1D(2, 2) << s
L.Conv2D(2, 3) << pixels
L.Conv3D(2, 2) << last_volume
L.Conv1DTranspose(2, 2) << s
L.Conv2DTranspose(2, 3) << pixels
L.Conv3DTranspose(2, 2) << last_volume
L.DepthwiseConv1D(2) << s
L.DepthwiseConv2D(2) << pixels
L.SeparableConv1D(2, 2) << s
L.SeparableConv2D(2, 2) << pixels
L.PReLU() << x
L.MultiHeadAttention(2, 2) << s, s
L.GroupQueryAttention(2, 2, 1) << s, s
L.Attention() << [s, s]
L.TimeDistributed(L.Dense(3)) << s
L.RNN(L.SimpleRNNCell(3)) << s
L.RNN([L.LSTMCell(3), L.GRUCell(2)]) << s
L.SimpleRNN(3) << s
L.LSTM(3) << s
L.GRU(3) << s
L.Bidirectional(L.LSTM(3)) << s
L.ConvLSTM1D(2, 2) << last_images
L.ConvLSTM2D(2, 2) << last_volume
L.ConvLSTM3D(2, 2) << films
"""

_BOTH = (
    "exp exp2 expm1 log log10 log1p log2 rsqrt reciprocal arccos arcsin cosh sinh tan softmax "
    "log_softmax softplus sum mean prod std var norm"
).split()

FLOAT32 = "\n".join([f"{place}.{name}(x)" for name in _BOTH for place in ("ops", "K")]) + """
x ** 2
x ** z
2.0 ** x
w ** 2
1 / x
x.sum()
x.mean(1)
x.softmax(-1)
x.cumsum(0)
ops.logaddexp(x, z)
ops.logsumexp(x, 1)
ops.pow(x, 2.0)
ops.Pow()(x, z)
ops.Inv()(x)
ops.Exp()(x)
ops.Log()(x)
ops.Softmax()(x)
ops.LogSoftmax()(x)
ops.acos(x)
ops.asin(x)
ops.acosh(x)
ops.asinh(x)
ops.atanh(x)
ops.softmin(x)
ops.reduce_sum(x)
ops.ReduceMean()(x, 1)
ops.ReduceSum()(x, 1)
ops.ReduceProd()(x, 1)
ops.cumsum(x, 0)
ops.CumSum()(x, 0)
ops.cumprod(x, 0)
ops.std_mean(x)
ops.var_mean(x)
ops.L2Normalize()(x)
ops.clip_by_global_norm([x, z])
ops.cross_entropy(x, i)
ops.nll_loss(x, i)
ops.binary_cross_entropy(p, p)
ops.binary_cross_entropy_with_logits(x, p, v, v)
ops.SoftmaxCrossEntropyWithLogits()(x, hot)
ops.SparseSoftmaxCrossEntropyWithLogits()(x, i)
ops.SigmoidCrossEntropyWithLogits()(x, p)
ops.BCEWithLogitsLoss()(x, p, v, v)
ops.BinaryCrossEntropy()(p, p)
ops.KLDivLoss()(x, p)
ops.L2Loss()(x)
ops.NLLLoss()(x, i, v)
ops.SmoothL1Loss()(x, z)
ops.kl_div(x, p)
ops.l1_loss(x, z)
ops.mse_loss(x, z)
ops.smooth_l1_loss(x, z)
ops.huber_loss(x, z)
K.logaddexp(x, z)
K.logaddexp2(x, z)
K.logsumexp(x)
K.power(x, 2)
K.erfinv(p)
K.arccosh(x)
K.arcsinh(x)
K.arctanh(x)
K.sparsemax(x)
K.average(x)
K.cumsum(x)
K.cumprod(x)
K.moments(x, 0)
K.trace(x)
K.trapezoid(x)
K.cdist(x, z)
K.segment_sum(x, i)
K.segment_prod(x, i)
K.nansum(x)
K.nanmean(x)
K.nanprod(x)
K.nancumsum(x)
K.nancumprod(x)
K.nanstd(x)
K.nanvar(x)
K.normalize(x)
K.layer_normalization(x)
K.rms_normalization(x)
K.binary_crossentropy(p, p)
K.categorical_crossentropy(hot, p)
K.sparse_categorical_crossentropy(i, p)
K.inv(sq)
K.cholesky(sq)
K.cholesky_inverse(sq)
K.det(sq)
K.slogdet(sq)
K.logdet(sq)
K.solve(sq, y)
K.solve_triangular(sq, y)
K.svd(sq)
K.qr(sq)
K.eig(sq)[1]
K.eigh(sq)
K.lstsq(sq, y)
K.pinv(sq)
K.lu_factor(sq)
K.linalg.norm(x)
K.rfft(x)
K.fft((x, z))
K.fft2((sq, sq))
K.ifft2((sq, sq))
K.irfft((x, z))
K.stft(wave, 4, 2, 4)
K.istft(K.stft(wave, 4, 2, 4), 4, 2, 4)
keras.activations.softmax(x)
keras.activations.log_softmax(x)
keras.activations.exponential(x)
keras.losses.binary_crossentropy(p, p)
keras.losses.binary_focal_crossentropy(p, p)
keras.losses.categorical_crossentropy(hot, p)
keras.losses.categorical_focal_crossentropy(hot, p)
keras.losses.categorical_generalized_cross_entropy(i, p, 0.5)
keras.losses.sparse_categorical_crossentropy(i, p)
keras.losses.categorical_hinge(hot, x)
keras.losses.hinge(x, z)
keras.losses.squared_hinge(x, z)
keras.losses.huber(x, z)
keras.losses.log_cosh(x, z)
keras.losses.kl_divergence(p, p)
keras.losses.mean_absolute_error(x, z)
keras.losses.mean_absolute_percentage_error(x, z)
keras.losses.mean_squared_error(x, z)
keras.losses.mean_squared_logarithmic_error(x, z)
keras.losses.poisson(x, z)
keras.losses.cosine_similarity(x, z)
keras.losses.dice(p, p)
keras.losses.tversky(p, p)
keras.losses.circle(i, x)
nn.Softmax() << x
nn.LogSoftmax() << x
nn.Softmin() << x
nn.Softmax2d() << image
nn.Norm() << x
nn.ClipByNorm() << x, 1.0
nn.LayerNorm((4,)) << x
nn.GroupNorm(1, 3) << image
nn.InstanceNorm1d(5) << s
nn.InstanceNorm2d(3) << image
nn.InstanceNorm3d(2) << volume
nn.MSELoss() << x, z
nn.L1Loss() << x, z
nn.SoftmaxCrossEntropyWithLogits(sparse=True) << x, i
nn.CrossEntropyLoss() << x, i
nn.BCELoss() << p, p
nn.Dense(4, 4, activation="softmax") << x
L.Softmax() << x
L.LayerNormalization() << x
L.GroupNormalization(1) << pixels
L.RMSNormalization() << x
L.UnitNormalization() << x
L.Average() << [x, z]
L.Dense(3, activation="softmax") << x
L.Activation("softmax") << x
L.Activation("exponential") << x
"""

PROMOTE = """
x + other
x - other
x * other
x / other
other + x
w + x
ops.add(x, other)
ops.Add()(x, other)
ops.tensor_add(x, other)
ops.sub(x, other)
ops.subtract(x, other)
ops.mul(x, other)
ops.multiply(x, other)
ops.div(x, other)
ops.divide(x, other)
ops.true_divide(x, other)
ops.RealDiv()(x, other)
ops.maximum(x, other)
ops.minimum(x, other)
ops.squared_difference(x, other)
ops.addn([x, other])
ops.AddN()([x, other])
ops.addcdiv(x, other, other)
ops.addcmul(x, x, other)
ops.lerp(x, other, 0.5)
ops.atan2(x, other)
ops.arctan2(x, other)
ops.concat([x, other], 0)
ops.Concat()([x, other])
ops.cat([x, other], 0)
ops.stack([x, other])
ops.hstack([x, other])
ops.vstack([x, other])
ops.where(x > 0, x, other)
ops.select(x > 0, x, other)
K.add(x, other)
K.subtract(x, other)
K.multiply(x, other)
K.divide(x, other)
K.true_divide(x, other)
K.maximum(x, other)
K.minimum(x, other)
K.arctan2(x, other)
K.append(x, other)
K.concatenate([x, other])
K.stack([x, other])
K.hstack([x, other])
K.vstack([x, other])
K.dstack([x, other])
K.where(x > 0, x, other)
K.select([x > 0], [x], other)
K.cross(x[:, :3], other[:, :3])
K.slice_update(x, (0, 0), other)
L.Add() << [x, other]
L.Subtract() << [x, other]
L.Multiply() << [x, other]
L.Maximum() << [x, other]
L.Minimum() << [x, other]
L.Concatenate() << [x, other]
"""

INPUTS = """
x + z
x * 2
-x
ops.relu(x)
ops.relu6(x)
ops.leaky_relu(x)
ops.elu(x)
ops.selu(x)
ops.gelu(x)
ops.silu(x)
ops.mish(x)
ops.sigmoid(x)
ops.tanh(x)
ops.abs(x)
ops.neg(x)
ops.sqrt(x)
ops.square(x)
ops.erf(x)
ops.max(x)[0]
ops.min(x)[0]
ops.clip(x, 0, 1)
ops.dropout(x)
ops.max_pool2d(image, 2)
ops.avg_pool2d(image, 2)
ops.adaptive_avg_pool2d(image, 1)
ops.gather(x, i, 0)
ops.reshape(x, (4, 2))
ops.transpose(x, (1, 0))
ops.pad(x, (1, 1))
ops.add(x, z)
ops.concat([x, z])
K.relu(x)
K.gelu(x)
K.sigmoid(x)
K.max_pool(pixels, 2)
K.average_pool(pixels, 2)
K.take(x, i, 0)
K.pad(x, ((0, 1), (0, 1)))
nn.ReLU() << x
nn.GELU() << x
nn.Mish() << x
nn.Dropout(p=0.5) << x
nn.AvgPool2d(2) << image
nn.MaxPool2d(2) << image
nn.BatchNorm1d(4) << x
nn.BatchNorm2d(3) << image
nn.BatchNorm3d(2) << volume
nn.SequentialCell(nn.ReLU(), nn.Flatten()) << image
L.ReLU() << x
L.LeakyReLU() << x
L.Activation("gelu") << x
L.Dropout(0.5) << x
L.MaxPooling2D(2) << pixels
L.AveragePooling2D(2) << pixels
L.GlobalAveragePooling2D() << pixels
L.BatchNormalization() << pixels
L.Flatten() << pixels
L.Add() << [x, z]
"""

CASES = {
    kind: [line for line in text.strip().splitlines() if line]
    for kind, text in (("half", HALF), ("float32", FLOAT32), ("promote", PROMOTE), ("inputs", INPUTS))
}
