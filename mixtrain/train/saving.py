"""`KerasSaving`: a Model's Keras network written to Keras's own files and read from them, float32 at every level."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import keras

from mixtrain import checks
from mixtrain.network.walk import tree_of
from mixtrain.precision.master_weights import masters_shown, updating_masters
from mixtrain.precision.own_policy import OWN_POLICY
from mixtrain.train.compiled import CompileArguments, compile_network
from mixtrain.train.networks import Networks

Path = str | os.PathLike[str]


class KerasSaving:
    """What a `Model` of a Keras network saves and loads; a Cell has `mixtrain.save_checkpoint`.

    Example:
        >>> [name for name in vars(KerasSaving) if not name.startswith("_")]
        ['save', 'save_weights', 'load_weights']
    """

    _networks: Networks
    _compile_arguments: CompileArguments

    def save(self, filepath: Path, overwrite: bool = True) -> None:
        """Write the network, its configuration and weights, as `keras.models.load_model` reads it.

        The file is that of the network as it was given: the precision of `amp_level` is no part of it, so that it can
        be loaded in plain Keras and trained at any level. With a loss and an optimizer of Keras's it is that of a
        compiled model, with the optimizer's state. The loss scale is not written; a run that goes on where it ended
        needs `ModelCheckpoint`.

        Args:
            filepath: The file; its name ends in ``.keras``.
            overwrite: Whether a file that is there is replaced.

        Raises:
            TypeError: The network is no `keras.Model`.
            ValueError: Another ending; the network has no variables yet.
            FileExistsError: The file is there and `overwrite` is False.

        Example:
            >>> import os, tempfile, mixtrain
            >>> network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            >>> model = mixtrain.Model(network, amp_level="O2")
            >>> path = os.path.join(tempfile.mkdtemp(), "dense.keras")
            >>> model.save(path)
            >>> keras.models.load_model(path).layers[0].compute_dtype
            'float32'
        """
        network, path = self._saved("save", filepath, (".keras",), overwrite)
        compile_network(network, self._compile_arguments)
        with _own_policies(network):
            network.save(path)

    def save_weights(self, filepath: Path, overwrite: bool = True) -> None:
        """Write the network's weights, float32, as `keras.Model.load_weights` reads them.

        Args:
            filepath: The file; its name ends in ``.weights.h5``.
            overwrite: Whether a file that is there is replaced.

        Raises:
            TypeError: The network is no `keras.Model`.
            ValueError: Another ending; the network has no variables yet.
            FileExistsError: The file is there and `overwrite` is False.

        Example:
            >>> import os, tempfile, mixtrain
            >>> network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            >>> path = os.path.join(tempfile.mkdtemp(), "dense.weights.h5")
            >>> mixtrain.Model(network).save_weights(path)
            >>> network.load_weights(path)
        """
        network, path = self._saved("save_weights", filepath, (".weights.h5",), overwrite)
        with _own_policies(network):
            network.save_weights(path)

    def load_weights(self, filepath: Path, skip_mismatch: bool = False) -> None:
        """Read weights that `save`, `save_weights` or Keras wrote, whatever the level they were trained at.

        Args:
            filepath: A file that ends in ``.weights.h5`` or ``.keras``.
            skip_mismatch: Whether layers whose weights have another shape keep those they have; Keras warns of them.

        Raises:
            TypeError: The network is no `keras.Model`.
            ValueError: The network has no variables yet, or others than the file.
            FileNotFoundError: There is no such file.

        Example:
            >>> import os, tempfile, mixtrain
            >>> network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            >>> path = os.path.join(tempfile.mkdtemp(), "dense.weights.h5")
            >>> network.save_weights(path)
            >>> mixtrain.Model(network, amp_level="O2").load_weights(path)
        """
        network, path = self._saved("load_weights", filepath, (".weights.h5", ".keras"), overwrite=True)
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"Model.load_weights: expected filepath to be a file; got {path!r}. Write the path of one."
            )
        skip_mismatch = checks.boolean("Model.load_weights", "skip_mismatch", skip_mismatch)
        with updating_masters(network.weights):
            network.load_weights(path, skip_mismatch=skip_mismatch)

    def _saved(self, method: str, filepath: Any, endings: tuple[str, ...], overwrite: bool) -> tuple[Any, str]:
        """Return the network and the path, both checked."""
        where, network = f"Model.{method}", self._networks.network
        if not isinstance(network, keras.Model):
            instead = "load_checkpoint and mixtrain.load_param_into_net" if method == "load_weights" else (
                "save_checkpoint(model.predict_network, path)"
            )
            raise checks.fail_type(
                where, "only a keras.Model is written and read in Keras's formats", network, f"mixtrain.{instead}"
            )
        checks.instance(where, "filepath", filepath, (str, os.PathLike), f'model.{method}("network{endings[0]}")')
        path = os.fspath(filepath)
        if not path.endswith(endings):
            raise checks.fail_value(
                where, f"filepath must end in {' or '.join(endings)}", path, f'model.{method}("network{endings[0]}")'
            )
        if not self._networks.built:
            raise checks.fail_value(
                where, "the network must have its variables", network, "model.build(train_dataset) before"
            )
        if not checks.boolean(where, "overwrite", overwrite) and os.path.exists(path):
            raise FileExistsError(f"{where}: expected a new file; got {path!r}, which is there. Write overwrite=True.")
        return network, path


@contextlib.contextmanager
def _own_policies(network: keras.Model) -> Iterator[None]:
    """Let every layer show the dtype policy and the float32 weights that its user gave it; compiled calls stay."""
    planned = [node.layer for node in tree_of(network).walk() if OWN_POLICY in vars(node.layer)]
    with masters_shown(network.weights), contextlib.ExitStack() as back:
        for layer in planned:
            back.callback(setattr, layer, "dtype_policy", layer.dtype_policy)
            layer.dtype_policy = vars(layer)[OWN_POLICY]
        yield
