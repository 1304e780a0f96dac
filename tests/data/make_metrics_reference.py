"""Reference numbers of metrics, written by MindSpore 2.10.

Run it where MindSpore is installed: ``python make_metrics_reference.py [target.npz]``. Keys are ``case/name``: ``x0``,
``x1`` (two batches of predictions), ``y0``, ``y1`` (their labels), and one array per setting of each metric, the value
after both batches. The multi-class ROC of the reference scrambles predictions that are not square, and it keeps only
the last batch: it is measured on one square batch.
"""

import pathlib
import sys

import mindspore.nn as nn
import mindspore.train as train
import numpy as np
from mindspore import Tensor

SEED = 20261121
RATIOS = (
    "tpr", "tnr", "ppv", "npv", "fnr", "fpr", "fdr", "for", "pt", "ts", "acc", "ba", "f1", "mcc", "fm", "bm", "mk",
)
store = {}


def put(case, **arrays):
    """Keep arrays under case/name."""
    for name, value in arrays.items():
        store[f"{case}/{name}"] = np.asarray(value)


def measured(metric, batches, **options):
    """Return a metric's value after batches."""
    metric.clear()
    for batch in batches:
        metric.update(*(Tensor(column) for column in batch))
    return metric.eval(**options)


def classes(rng):
    """Metrics of class scores."""
    scores = [rng.dirichlet(np.ones(4), n).astype(np.float32) for n in (7, 5)]
    labels = [rng.integers(0, 4, n).astype(np.int32) for n in (7, 5)]
    batches = list(zip(scores, labels))
    one_hot = [(x, np.eye(4, dtype=np.float32)[y]) for x, y in batches]
    put("classes", x0=scores[0], x1=scores[1], y0=labels[0], y1=labels[1])
    put("classes", accuracy=measured(train.Accuracy(), batches), precision=measured(train.Precision(), batches),
        precision_average=measured(train.Precision(), batches, average=True), recall=measured(train.Recall(), batches),
        recall_average=measured(train.Recall(), one_hot, average=True), f1=measured(train.F1(), batches),
        fbeta=measured(train.Fbeta(0.5), batches), fbeta_average=measured(train.Fbeta(0.5), one_hot, average=True),
        top1=measured(train.Top1CategoricalAccuracy(), batches),
        top2=measured(train.TopKCategoricalAccuracy(2), one_hot), perplexity=measured(train.Perplexity(), batches),
        perplexity_ignore=measured(train.Perplexity(1), batches), mae=measured(train.MAE(), one_hot),
        mse=measured(train.MSE(), one_hot), loss=measured(train.Loss(), [(np.float32(0.5),), (scores[1][0],)]))
    for normalize in ("no_norm", "target", "prediction", "all"):
        put("classes", **{f"confusion_{normalize}": measured(train.ConfusionMatrix(4, normalize), batches)})
    first = rng.standard_normal((4, 4)).astype(np.float32)
    every = np.arange(4).astype(np.int32)[::-1].copy()
    put("square", x0=first, y0=every)
    curves = measured(train.ROC(class_num=4), [(first, every)])
    for number in range(4):
        put("square", **{f"roc_{number}": np.stack([part[number] for part in curves])})


def labels(rng):
    """Metrics of several labels, scores of one class, and images."""
    x, y = ([rng.integers(0, 2, (n, 3)).astype(np.int32) for n in (6, 4)] for _ in range(2))
    batches = list(zip(x, y))
    put("multilabel", x0=x[0], x1=x[1], y0=y[0], y1=y[1])
    put("multilabel", accuracy=measured(train.Accuracy("multilabel"), batches))
    for name, kind in (("precision", train.Precision), ("recall", train.Recall)):
        put("multilabel", **{name: measured(kind("multilabel"), batches),
                             f"{name}_average": measured(kind("multilabel"), batches, average=True)})
    scores = np.round(rng.random(12), 1).astype(np.float32)
    truth = rng.integers(0, 2, 12).astype(np.int32)
    fpr, tpr, thresholds = measured(train.ROC(pos_label=1), [(scores, truth)])
    put("binary", x0=scores, y0=truth, roc=np.stack([fpr, tpr, thresholds]), auc=train.auc(fpr, tpr),
        auc_falling=train.auc(fpr[::-1], tpr[::-1]), auc_reorder=train.auc(scores, truth, reorder=True),
        confusion=measured(train.ConfusionMatrix(2, threshold=0.4), [(scores, truth)]))
    images = [np.moveaxis(np.eye(3, dtype=np.int32)[rng.integers(0, 3, (n, 4))], -1, 1) for n in (3, 2, 3, 2)]
    put("images", x0=images[0], x1=images[1], y0=images[2], y1=images[3])
    batches = [(images[0], images[2]), (images[1], images[3])]
    for ratio in RATIOS:
        metric = train.ConfusionMatrixMetric
        put("images", **{
            ratio: measured(metric(metric_name=ratio), batches),
            f"{ratio}_skip": measured(metric(skip_channel=False, metric_name=ratio), batches),
            f"{ratio}_each": measured(metric(metric_name=ratio, calculation_method=True), batches),
            f"{ratio}_sum": measured(metric(metric_name=ratio, calculation_method=True, decrease="sum"), batches),
        })
    rows = rng.standard_normal((4, 5)).astype(np.float32)
    put("vectors", x0=rows)
    for similarity in ("cosine", "dot"):
        for reduction in ("none", "sum", "mean"):
            for diagonal in (True, False):
                metric = train.CosineSimilarity(similarity, reduction, diagonal)
                put("vectors", **{f"{similarity}_{reduction}_{int(diagonal)}": measured(metric, [(rows,)])})
    masks = [(rng.random((2, 3, 3)) > 0.5).astype(np.float32) for _ in range(4)]
    put("masks", x0=masks[0], x1=masks[1], y0=masks[2], y1=masks[3])
    batches = [(masks[0], masks[2]), (masks[1], masks[3])]
    put("masks", dice=measured(train.Dice(), batches), dice_smooth=measured(train.Dice(0.5), batches))


def surfaces(rng):
    """Distances between the edges of masks, and the sensitivity of a score to hidden parts."""
    images = {"plane": (9, 11), "volume": (4, 5, 6)}
    for name, shape in images.items():
        x, y = ((rng.random(shape) > 0.4).astype(np.int32) for _ in range(2))
        put("surfaces", **{f"{name}_x": x, f"{name}_y": y})
        for kind in ("euclidean", "chessboard", "taxicab"):
            made = {
                "hausdorff": train.HausdorffDistance(kind), "mean": train.MeanSurfaceDistance(False, kind),
                "hausdorff_directed": train.HausdorffDistance(kind, 80.0, True),
                "mean_symmetric": train.MeanSurfaceDistance(True, kind),
                "square": train.RootMeanSquareDistance(False, kind),
                "square_symmetric": train.RootMeanSquareDistance(True, kind),
            }
            for which, metric in made.items():
                metric.update(x, y, 1)
                put("surfaces", **{f"{which}_{kind}_{name}": metric.eval()})
    weight, bias = rng.standard_normal((3, 20)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    image = rng.random((1, 4, 5)).astype(np.float32)
    network = nn.SequentialCell(nn.Flatten(), nn.Dense(20, 3, Tensor(weight), Tensor(bias)))
    put("occlusion", weight=weight, bias=bias, image=image)
    box = {"pad_val": 0.5, "margin": 1, "n_batch": 4, "b_box": [1, 3, 0, -1]}
    for name, options in {"whole": {}, "box": box}.items():
        metric = train.OcclusionSensitivity(**options)
        metric.update(network, image, np.array(2, np.int32))
        put("occlusion", **{name: metric.eval()})


def translations():
    """BLEU scores of two sentences."""
    candidates = [["i", "have", "a", "pen", "on", "my", "desk"], ["the", "cat", "sat", "on", "the", "mat"]]
    references = [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]],
                  [["the", "cat", "sat", "on", "a", "mat", "there"]]]
    for n_gram in (1, 2, 4):
        for smooth in (False, True):
            metric = train.BleuScore(n_gram, smooth)
            metric.update(candidates, references)
            put("bleu", **{f"{n_gram}_{int(smooth)}": metric.eval()})


def main():
    rng = np.random.default_rng(SEED)
    with np.errstate(all="ignore"):
        classes(rng)
        labels(rng)
        translations()
        surfaces(rng)
    put("names", names=train.metrics.names())
    beside = pathlib.Path(__file__).with_name("metrics_reference.npz")
    target = sys.argv[1] if len(sys.argv) > 1 else beside
    np.savez_compressed(target, **store)
    print(len(store), "arrays in", target)


if __name__ == "__main__":
    main()
