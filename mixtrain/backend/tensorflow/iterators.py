"""Iterators over TensorFlow's streams: they read ahead, begin soon, and let their stream go before Python ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def started(dataset: tf.data.Dataset) -> Any:
    """Return an iterator that reads ahead."""
    return opened(kept(dataset, "_mixtrain_ahead", lambda dataset: settled(dataset.prefetch(tf.data.AUTOTUNE))))


def opened(dataset: tf.data.Dataset) -> Any:
    """Return an iterator that lets its stream go at exit, if it lives so long.

    While Python ends, a thread of TensorFlow's that calls Python code is stopped without a word, and the iterator would
    wait for it without end.
    """
    iterator = iter(dataset)
    resource = tf.nest.flatten(iterator, expand_composites=True)[0]
    weakref.finalize(resource, _let_go, weakref.ref(resource), dataset)
    return iterator


def _let_go(alive: weakref.ref[Any], dataset: tf.data.Dataset) -> None:
    """Give an iterator that is still alive an empty stream in place of its own."""
    resource = alive()
    if resource is not None:
        tf.raw_ops.MakeIterator(dataset=tf.data.experimental.to_variant(dataset.take(0)), iterator=resource)


def settled(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a stream that is not tuned, where its options do not ask.

    TensorFlow tunes a stream in a thread that sleeps longer and longer, and an iterator that goes away waits for it, up
    to a minute. Without it each parallel part is as wide as the machine.
    """
    options = tf.data.Options()
    if dataset.options().autotune.enabled is None:
        options.autotune.enabled = False
    return dataset.with_options(options)


def kept(dataset: tf.data.Dataset, name: str, make: Callable[[tf.data.Dataset], Any]) -> Any:
    """Return what `make` makes of a stream, and keep it with the stream: it takes longer than starting a pass."""
    if name not in vars(dataset):
        setattr(dataset, name, make(dataset))
    return vars(dataset)[name]
