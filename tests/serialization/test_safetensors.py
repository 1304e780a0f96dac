"""Plain safetensors files: what other programs read and write, and what is refused of them."""

from __future__ import annotations

import pathlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mixtrain
from mixtrain import CheckpointError, Parameter, Tensor, load_checkpoint, load_param_into_net, nn, save_checkpoint


class _Net(nn.Cell):
    """Two layers, one with moving statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm = nn.Dense(3, 2), nn.BatchNorm1d(2)

    def construct(self, x: Tensor) -> Tensor:
        return self.norm(self.dense(x))


def _values(network: nn.Cell) -> dict[str, Any]:
    return {parameter.name: parameter.asnumpy().tolist() for parameter in network.get_parameters()}


@pytest.mark.parametrize("async_save", [False, True, "thread"])
def test_a_network_is_written_for_other_programs_and_read_back(tmp_path: pathlib.Path, async_save: bool | str) -> None:
    network, other, path = _Net(), _Net(), tmp_path / "net.safetensors"
    save_checkpoint(network, tmp_path / "net", async_save=async_save, append_dict={"epoch": 4}, format="safetensors")
    loaded = load_checkpoint(path, other, format="safetensors")
    assert _values(other) == _values(network)
    assert int(loaded["epoch"]) == 4
    content = load_file(path)
    assert {name: value.tolist() for name, value in content.items() if name != "epoch"} == _values(network)
    assert [entry.name for entry in tmp_path.iterdir()] == ["net.safetensors"]


def test_files_of_other_programs_are_read_in_all_dtypes(tmp_path: pathlib.Path) -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    content = {
        "dense.weight": weight, "dense.bias": weight[:, 0].astype(np.float16), "step": np.array(3, np.int32),
        "kept.half": weight.astype(ml_dtypes.bfloat16),
    }
    save_file(content, tmp_path / "a.safetensors", metadata={"format": "pt"})
    loaded = load_checkpoint(
        str(tmp_path / "a.safetensors"), format="safetensors", choice_func=lambda name: name != "step"
    )
    assert {name: value.dtype for name, value in loaded.items()} == {
        "dense.weight": mixtrain.float32, "dense.bias": mixtrain.float16, "kept.half": mixtrain.bfloat16,
    }
    network = _Net()
    with pytest.warns(UserWarning) as warned:
        load_param_into_net(network, loaded)
    assert [str(each.message).split(": ")[1] for each in warned] == [
        "4 of 6 parameters of the network are not in the checkpoint and stay as they were",
        "1 parameters were converted to the network's dtype",
    ]
    assert network.dense.weight.asnumpy().tolist() == weight.tolist()
    assert network.dense.bias.asnumpy().tolist() == weight[:, 0].tolist()


def test_a_file_is_loaded_in_a_thread(tmp_path: pathlib.Path) -> None:
    network = _Net()
    save_checkpoint(network, tmp_path / "a.ckpt")
    save_checkpoint(network, tmp_path / "a.safetensors", format="safetensors")
    for name in ("a.ckpt", "a.safetensors"):
        other = _Net()
        loaded = mixtrain.load_checkpoint_async(tmp_path / name, other).result()
        assert {key: value.asnumpy().tolist() for key, value in loaded.items()} == _values(network) == _values(other)
    with pytest.raises(ValueError, match="a file that exists"):
        mixtrain.load_checkpoint_async(str(tmp_path / "none.ckpt")).result()


def test_what_is_no_such_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.safetensors"
    save_checkpoint({"w": Tensor([1.0, 2.0])}, path, format="safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="SHA-256 differs"):
        load_checkpoint(path, format="safetensors")
    for damaged in (b"", b"PK\x03\x04 and so on", (2**60).to_bytes(8, "little") + b"{}", b"\x02\0\0\0\0\0\0\0{]"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load_checkpoint(path, format="safetensors")
    with pytest.raises(ValueError, match='must end with ckpt; got .* Write format="safetensors"'):
        load_checkpoint(str(path))
    with pytest.raises(TypeError, match='values of format="safetensors" must be tensors and numbers; got str'):
        save_checkpoint({"w": Parameter([1.0]), "note": "text"}, path, format="safetensors")


def test_a_checkpoint_of_a_run_is_read_whole_in_this_format_too(tmp_path: pathlib.Path) -> None:
    save_checkpoint({"w": Tensor([1.0]), "note": "text"}, tmp_path / "a.ckpt")
    (tmp_path / "a.ckpt").rename(tmp_path / "a.safetensors")
    assert load_checkpoint(tmp_path / "a.safetensors", format="safetensors")["note"] == "text"


@pytest.mark.parametrize("content", [{}, {"__metadata__": Tensor([1.0])}, {"mixtrain:description": Tensor([1.0])}])
def test_what_no_reader_finds_again_is_not_written(tmp_path: pathlib.Path, content: dict[str, Tensor]) -> None:
    with pytest.raises(ValueError, match='format="safetensors" needs parameters, of names'):
        save_checkpoint(content, tmp_path / "a", format="safetensors")
    with pytest.raises(TypeError, match="expected 'w' to be of a dtype of files .* got complex64"):
        save_checkpoint({"w": np.ones(2, np.complex64)}, tmp_path / "a", format="safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["ckpt", "safetensors"])
def test_an_array_that_changes_while_a_thread_writes_is_written_as_it_was(tmp_path: pathlib.Path, form: str) -> None:
    array = np.zeros(2_000_000, np.float32)
    save_checkpoint({"w": array}, tmp_path / f"a.{form}", async_save=True, format=form)
    array += 1
    assert not load_checkpoint(tmp_path / f"a.{form}", format=form)["w"].asnumpy().any()


def test_checkpoints_of_ranks_become_safetensors_and_checkpoints_again(tmp_path: pathlib.Path) -> None:
    networks = [_Net(), _Net()]
    for rank, network in enumerate(networks):
        (tmp_path / f"rank{rank}").mkdir()
        save_checkpoint(network, tmp_path / f"rank{rank}" / "net.ckpt")
    mixtrain.ckpt_to_safetensors(tmp_path, tmp_path / "out", name_map={"dense.bias": "b"}, file_name_regex="n.t")
    content = load_file(tmp_path / "out/rank1/net.safetensors")
    expected = _values(networks[1])
    assert content["b"].tolist() == expected["dense.bias"] and "dense.bias" not in content
    mixtrain.safetensors_to_ckpt(tmp_path / "out/rank1/net.safetensors", name_map={"b": "dense.bias"})
    other = _Net()
    load_param_into_net(other, load_checkpoint(tmp_path / "out/rank1/net.ckpt"))
    assert _values(other) == expected


def test_a_conversion_refuses_files_of_another_format_and_folders_without_ranks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net.safetensors").touch()
    for path in (tmp_path, tmp_path / "net.safetensors", tmp_path / "none.ckpt"):
        with pytest.raises(ValueError, match=r"ckpt_to_safetensors: file_path must be a file \*.ckpt, or a folder"):
            mixtrain.ckpt_to_safetensors(path)
    with pytest.raises(ValueError, match="save_path must be a folder"):
        mixtrain.safetensors_to_ckpt(tmp_path / "net.safetensors", "a.ckpt")
