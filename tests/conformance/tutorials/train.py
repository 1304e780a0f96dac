"""Training with a loop of one's own: hyperparameters, loss, optimizer, a train loop and a test loop."""

import numpy as np

import mindspore
from mindspore import Tensor, nn
from mindspore.dataset import GeneratorDataset, transforms, vision


# ---- data: pictures with one bright row, whose place is the class ----
class BrightRows:
    def __init__(self, count, seed):
        generator = np.random.default_rng(seed)
        self.labels = generator.integers(0, 4, count).astype(np.int32)
        self.pictures = generator.integers(0, 60, (count, 8, 8, 1), dtype=np.uint8)
        for picture, label in zip(self.pictures, self.labels):
            picture[2 * label] = 255

    def __getitem__(self, index):
        return self.pictures[index], self.labels[index]

    def __len__(self):
        return len(self.labels)


def datapipe(source, batch_size):
    image_transforms = [vision.Rescale(1.0 / 255.0, 0), vision.Normalize(mean=(0.2,), std=(0.3,)), vision.HWC2CHW()]
    label_transform = transforms.TypeCast(mindspore.int32)
    dataset = GeneratorDataset(source, ["image", "label"], shuffle=False)
    dataset = dataset.map(image_transforms, "image")
    dataset = dataset.map(label_transform, "label")
    dataset = dataset.batch(batch_size)
    return dataset


train_dataset = datapipe(BrightRows(192, 0), batch_size=16)
test_dataset = datapipe(BrightRows(64, 1), batch_size=16)

# ---- the network, with weights that are the same wherever this runs ----
generator = np.random.default_rng(4)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        first = Tensor((generator.standard_normal((24, 64)) / 8).astype(np.float32))
        second = Tensor((generator.standard_normal((4, 24)) / 5).astype(np.float32))
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(8 * 8, 24, weight_init=first, bias_init="zeros"),
            nn.ReLU(),
            nn.Dense(24, 4, weight_init=second, bias_init="zeros"),
        )

    def construct(self, x):
        x = self.flatten(x)
        logits = self.dense_relu_sequential(x)
        return logits


model = Network()
epochs = 3
learning_rate = 1e-1
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(model.trainable_params(), learning_rate=learning_rate)


def forward_fn(data, label):
    logits = model(data)
    loss = loss_fn(logits, label)
    return loss, logits


grad_fn = mindspore.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)


def train_step(data, label):
    (loss, _), grads = grad_fn(data, label)
    optimizer(grads)
    return loss


history = []


def train_loop(model, dataset):
    size = dataset.get_dataset_size()
    model.set_train()
    for batch, (data, label) in enumerate(dataset.create_tuple_iterator()):
        loss = train_step(data, label)
        history.append(loss.asnumpy())
        if batch % 4 == 0:
            loss, current = loss.asnumpy(), batch
            print(f"loss: {loss:>7f}  [{current:>3d}/{size:>3d}]")


def test_loop(model, dataset, loss_fn):
    num_batches = dataset.get_dataset_size()
    model.set_train(False)
    total, test_loss, correct = 0, 0, 0
    for data, label in dataset.create_tuple_iterator():
        pred = model(data)
        total += len(data)
        test_loss += loss_fn(pred, label).asnumpy()
        correct += (pred.argmax(1) == label).asnumpy().sum()
    test_loss /= num_batches
    correct /= total
    print(f"Test: \n Accuracy: {(100 * correct):>0.1f}%, Avg loss: {test_loss:>8f} \n")
    return correct, test_loss


for t in range(epochs):
    print(f"Epoch {t + 1}\n-------------------------------")
    train_loop(model, train_dataset)
    accuracy, average = test_loop(model, test_dataset, loss_fn)
print("Done!")

assert len(history) == 36 and history[0].shape == () and history[0].dtype == np.float32
np.testing.assert_allclose(history[::12], [2.03073, 0.085498, 0.027275], rtol=1e-3)
assert accuracy == 1.0
np.testing.assert_allclose(average, 0.017032, rtol=1e-3)

# ---- prediction ----
model.set_train(False)
for data, label in test_dataset:
    pred = model(data)
    predicted = pred.argmax(1)
    print(f'Predicted: "{predicted[:6]}", Actual: "{label[:6]}"')
    break
assert predicted.shape == (16,) and str(label[:6]) == str(predicted[:6])
