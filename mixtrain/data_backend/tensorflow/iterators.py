"""Iterators of `tf.data` that read ahead, start fast, and release their dataset when Python exits."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def start_prefetching(dataset: tf.data.Dataset) -> Any:
    """Return an iterator that reads ahead."""
    return start(cached(dataset, "_mixtrain_ahead", lambda dataset: untuned(dataset.prefetch(tf.data.AUTOTUNE))))


def start(dataset: tf.data.Dataset) -> Any:
    """Return an iterator that releases its dataset at exit, if it is still alive.

    When Python exits, a thread of TensorFlow that calls Python code stops silently, and the iterator would wait for it
    forever.
    """
    iterator = iter(dataset)
    resource = tf.nest.flatten(iterator, expand_composites=True)[0]
    weakref.finalize(resource, _replace_by_empty, weakref.ref(resource), dataset)
    return iterator


def _replace_by_empty(reference: weakref.ref[Any], dataset: tf.data.Dataset) -> None:
    """Give an iterator that is still alive an empty dataset."""
    resource = reference()
    if resource is not None:
        tf.raw_ops.MakeIterator(dataset=tf.data.experimental.to_variant(dataset.take(0)), iterator=resource)


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset without autotuning, unless its options request it.

    TensorFlow tunes in a thread that sleeps longer and longer, and the deletion of an iterator waits for it, up to a
    minute. Without tuning each parallel part uses all cores.
    """
    options = tf.data.Options()
    if dataset.options().autotune.enabled is None:
        options.autotune.enabled = False
    return dataset.with_options(options)


def cached(dataset: tf.data.Dataset, name: str, make: Callable[[tf.data.Dataset], Any]) -> Any:
    """Return ``make(dataset)``, cached on the dataset: making it takes longer than starting a pass."""
    if name not in vars(dataset):
        setattr(dataset, name, make(dataset))
    return vars(dataset)[name]
