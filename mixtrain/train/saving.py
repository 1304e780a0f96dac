"""`KerasSaving`: saves and loads a Model's Keras network in Keras's file formats, in float32 at every level."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import keras

from mixtrain import checks
from mixtrain.network.marks import OWN_POLICY
from mixtrain.network.walk import tree_of
from mixtrain.precision.master_weights import presented_in_float32, updating_masters
from mixtrain.train.compiled import CompileArguments, compile_network
from mixtrain.train.networks import Networks
from mixtrain.train.own_steps import OwnSteps

Path = str | os.PathLike[str]


class KerasSaving:
    """The saving methods of a `Model` of a Keras network; for a Cell, see `mixtrain.save_checkpoint`."""

    _networks: Networks
    _compile_arguments: CompileArguments
    _own: OwnSteps | None

    def save(self, filepath: Path, overwrite: bool = True) -> None:
        """Save the network's configuration and weights to a file for `keras.models.load_model`.

        The file has the network without the precision of `amp_level`, so that it can be loaded in plain Keras and
        trained at any level. With a Keras loss and optimizer, it is the file of a compiled model, with the optimizer's
        state. The loss scale is not saved; use `ModelCheckpoint` to resume a run.

        `filepath`: The file; its name ends in ``.keras``. `overwrite`: Whether to replace an existing file.

        Raises: TypeError if the network is not a `keras.Model`. ValueError for another ending, or a network
            without variables yet. FileExistsError if the file exists and `overwrite` is False.

        Example: ``model.save("lenet.keras")``, then ``keras.models.load_model("lenet.keras")``.
        """
        network, path = self._checked("save", filepath, (".keras",), overwrite)
        if self._own is None:
            compile_network(network, self._compile_arguments)
        with _own_policies(network), contextlib.nullcontext() if self._own is None else self._own.unprepared():
            network.save(path)

    def export(self, filepath: Path, **options: Any) -> None:
        """Export the network for inference in float32, by `keras.Model.export`, with its arguments."""
        network, path = self._checked("export", filepath, ("",), overwrite=True)
        with _own_policies(network):
            network.export(path, **options)

    def save_weights(self, filepath: Path, overwrite: bool = True) -> None:
        """Save the network's weights in float32 to a file for `keras.Model.load_weights`.

        `filepath`: The file; its name ends in ``.weights.h5``. `overwrite`: Whether to replace an existing file.

        Raises: TypeError if the network is not a `keras.Model`. ValueError for another ending, or a network
            without variables yet. FileExistsError if the file exists and `overwrite` is False.

        Example: ``model.save_weights("lenet.weights.h5")``.
        """
        network, path = self._checked("save_weights", filepath, (".weights.h5",), overwrite)
        with _own_policies(network):
            network.save_weights(path)

    def load_weights(self, filepath: Path, skip_mismatch: bool = False) -> None:
        """Load weights that `save`, `save_weights` or Keras saved, trained at any level.

        `filepath`: A file that ends in ``.weights.h5`` or ``.keras``. `skip_mismatch`: Whether to skip layers whose
        weights have another shape, with a warning from Keras.

        Raises: TypeError if the network is not a `keras.Model`. ValueError if the network has no variables yet, or
            others than the file. FileNotFoundError if there is no such file.

        Example: ``model.load_weights("lenet.weights.h5")``.
        """
        network, path = self._checked("load_weights", filepath, (".weights.h5", ".keras"), overwrite=True)
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"Model.load_weights: expected filepath to be a file; got {path!r}. Write the path of one."
            )
        skip_mismatch = checks.boolean("Model.load_weights", "skip_mismatch", skip_mismatch)
        with updating_masters(network.weights):
            network.load_weights(path, skip_mismatch=skip_mismatch)

    def _checked(self, method: str, filepath: Any, endings: tuple[str, ...], overwrite: bool) -> tuple[Any, str]:
        where, network = f"Model.{method}", self._networks.network
        if not isinstance(network, keras.Model):
            alternative = "load_checkpoint and mixtrain.load_param_into_net" if method == "load_weights" else (
                "save_checkpoint(model.predict_network, path)"
            )
            raise checks.fail_type(
                where, "only a keras.Model is written and read in Keras's formats", network, f"mixtrain.{alternative}"
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
    """Give every layer its own dtype policy and float32 weights inside the block; compiled calls stay valid."""
    own_policies = [(node.layer, OWN_POLICY.of(node.layer)) for node in tree_of(network).walk()]
    with presented_in_float32(network.weights), contextlib.ExitStack() as back:
        for layer, policy in own_policies:
            if policy is not None:
                back.callback(setattr, layer, "dtype_policy", layer.dtype_policy)
                layer.dtype_policy = policy
        yield
