"""What is counted in a compiled GPU program, and the page of these counts; no CUDA is needed."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import keras
import pytest

from benchmarks import gpu_compiled
from benchmarks.gpu_child import Asker
from benchmarks.gpu_compiled import FORMATS, NETWORKS, UPDATE, area_of, as_markdown, counts_by_area
from benchmarks.gpu_page import PAGE
from benchmarks.hlo import Kernel, counts, kernels_of, products_of
from benchmarks.workloads import LENET
from benchmarks.written import read_records

# Of the form that XLA writes for a GPU, shortened: two fusions, a convolution, a copy, a loop and a conditional.
PROGRAM = """\
HloModule jit_run, is_scheduled=true, entry_computation_layout={(f16[8,16,16,4]{3,2,1,0})->f16[8,14,14,4]{3,2,1,0}}

%sum (lhs: f32[], rhs: f32[]) -> f32[] {
  %lhs = f32[] parameter(0)
  %rhs = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%lhs, %rhs)
}

%fused_slice (p0: f16[8,16,16,4], p1: f16[8,14,14,4]) -> f16[8,14,14,4] {
  %p0 = f16[8,16,16,4]{3,2,1,0} parameter(0)
  %slice.1 = f16[8,14,14,4]{3,2,1,0} slice(%p0), slice={[0:8], [1:15], [1:15], [0:4]}
  %p1 = f16[8,14,14,4]{3,2,1,0} parameter(1)
  ROOT %multiply.1 = f16[8,14,14,4]{3,2,1,0} multiply(%slice.1, %p1)
}

%fused_sums (p.2: f16[8,14,14,4]) -> (f32[4], f32[4]) {
  %p.2 = f16[8,14,14,4]{3,2,1,0} parameter(0)
  %wide = f32[8,14,14,4]{3,2,1,0} convert(%p.2)
  %zero = f32[] constant(0)
  %reduce.1 = f32[4]{0} reduce(%wide, %zero), dimensions={0,1,2}, to_apply=%sum
  %square = f32[8,14,14,4]{3,2,1,0} multiply(%wide, %wide)
  %reduce.2 = f32[4]{0} reduce(%square, %zero), dimensions={0,1,2}, to_apply=%sum
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}) tuple(%reduce.1, %reduce.2)
}

%body (state: (f32[4])) -> (f32[4]) {
  %state = (f32[4]{0}) parameter(0)
  %value = f32[4]{0} get-tuple-element(%state), index=0
  %negate.1 = f32[4]{0} negate(%value), metadata={op_name="jit(run)/update/neg"}
  ROOT %tuple.2 = (f32[4]{0}) tuple(%negate.1)
}

%condition (state.1: (f32[4])) -> pred[] {
  %state.1 = (f32[4]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}

%small_branch (x: f32[4]) -> f32[4] {
  ROOT %x = f32[4]{0} parameter(0)
}

%large_branch (y: f32[4]) -> f32[4] {
  %y = f32[4]{0} parameter(0)
  ROOT %copy.2 = f32[4]{0} copy(%y)
}

ENTRY %main.9 (x.1: f16[8,16,16,4], kernel: f16[4,3,3,4], flag: pred[]) -> f16[8,14,14,4] {
  %x.1 = f16[8,16,16,4]{3,2,1,0} parameter(0)
  %kernel = f16[4,3,3,4]{3,2,1,0} parameter(1)
  %flag = pred[] parameter(2)
  %conv.1 = (f16[8,14,14,4]{3,2,1,0}, u8[0]{0}) custom-call(%x.1, %kernel), window={size=3x3}, \
custom_call_target="__cudnn$convForward", metadata={op_name="jit(run)/jvp(net)/conv2d/conv_general_dilated"}
  %y.1 = f16[8,14,14,4]{3,2,1,0} get-tuple-element(%conv.1), index=0
  %sums = (f32[4]{0}, f32[4]{0}) fusion(%y.1), kind=kInput, calls=%fused_sums, \
metadata={op_name="jit(run)/jvp(net)/batch_normalization/reduce_sum"}
  %first = f32[4]{0} get-tuple-element(%sums), index=0
  %tuple.3 = (f32[4]{0}) tuple(%first)
  %loop = (f32[4]{0}) while(%tuple.3), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"3"}}
  %last = f32[4]{0} get-tuple-element(%loop), index=0
  %branch = f32[4]{0} conditional(%flag, %last, %last), true_computation=%small_branch, false_computation=%large_branch
  ROOT %out = f16[8,14,14,4]{3,2,1,0} fusion(%x.1, %y.1), kind=kLoop, calls=%fused_slice, \
metadata={op_name="jit(run)/transpose(jvp(net))/re_lu_1/mul"}
}
"""
IN, OUT, KERNEL = 2 * 8 * 16 * 16 * 4, 2 * 8 * 14 * 14 * 4, 2 * 4 * 3 * 3 * 4


def test_kernels_of_a_program_with_the_bytes_that_each_reads_and_writes() -> None:
    convolution, sums, loop, negation, branch, copy, product = kernels_of(PROGRAM)
    assert (convolution.kind, convolution.read, convolution.written) == ("__cudnn$convForward", IN + KERNEL, OUT)
    assert (sums.kind, sums.read, sums.written) == ("reduce fusion", OUT, 32)
    assert (loop.kind, branch.kind, loop.moved + branch.moved) == ("while", "conditional", 0)
    assert (negation.launches, negation.moved) == (3, 3 * 32)
    assert (copy.kind, copy.launches) == ("copy", 1)  # of the branch that moves more
    # Only the slice of the first operand is read.
    assert (product.kind, product.read, product.written) == ("loop fusion", 2 * OUT, OUT)
    assert counts([convolution, negation]) == {
        "kernels": 4, "small": 4, "gb": pytest.approx(1e-9 * (IN + KERNEL + OUT + 96))
    }
    assert counts([Kernel("copy", "", 2**19, 2**19)])["small"] == 0


def test_a_text_without_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match=r"benchmarks\.hlo: expected the text of a compiled program.*got none"):
        kernels_of("HloModule nothing")


def test_areas_are_layers_and_their_pass_and_sum_up_to_the_whole() -> None:
    record = counts_by_area(kernels_of(PROGRAM))
    expected = {"convolution, forward", "ReLU, backward", "batch norm, forward", UPDATE}
    assert expected < set(record["areas"])
    assert sum(row["kernels"] for row in record["areas"].values()) == record["kernels"]
    assert sum(row["gb"] for row in record["areas"].values()) == pytest.approx(record["gb"])
    assert area_of("jit(run)/jvp(f)/layer_normalization_3/add") == "layer norm, forward"
    assert area_of("jit(run)/reduce_sum") == UPDATE and area_of("") != UPDATE


def test_a_run_keeps_its_programs_and_other_networks_and_says_that_it_counted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def ask(self: Asker, about: str, environment: Any, **request: str) -> dict[str, Any]:
        asked.append({**environment, **request})
        pathlib.Path(request["text"]).write_text(PROGRAM)
        return {"peak_bytes": 2**30, "seconds": 1.0, "versions": {"jax": "1"}}

    page = tmp_path / "page.md"
    page.write_text("<!-- gpu_compiled: begin -->\n<!-- gpu_compiled: end -->\n")
    monkeypatch.setattr(Asker, "ask", ask)
    monkeypatch.setattr("benchmarks.gpu_compiled.write_page.__defaults__", (tmp_path, page))
    options = ["--results", str(tmp_path), "--programs", str(tmp_path / "programs"), "--jax-python", "python", "--only"]
    for network in ("resnet20", "resnet50", "resnet20"):
        assert gpu_compiled.main([*options, network]) == 0
    # The third run found its programs; those of float8 are only compiled for networks of dense layers.
    assert len(asked) == 2 * sum(len(contenders) for name, contenders in FORMATS.items() if name != "float8")
    assert {request["JAX_PLATFORMS"] for request in asked} == {"cpu"}
    assert any(request.get("JAX_DEFAULT_MATMUL_PRECISION") == "tensorfloat32" for request in asked)
    (record,) = read_records(["gpu_compiled"], tmp_path)
    assert [row["network"] for row in record["programs"]] == ["resnet50"] * 9 + ["resnet20"] * 9
    text = page.read_text()
    assert "**Counted, not timed**" in text and "jax 1" in text and text.count(", counted\n") == 2
    assert "| float16 | mixtrain | 9 | 9 | 3 | 0.00 | 1.000 | 1.00 |" in text
    assert text.count("Counted") == capsys.readouterr().out.count("Counted") - 2 == 1


def test_products_of_float8_values_are_counted_whatever_multiplies_them() -> None:
    program = """
ENTRY %main (x: f8e4m3fn[2,4], y: f8e4m3fn[4,2], z: bf16[4,2]) -> bf16[2,2] {
  %x = f8e4m3fn[2,4]{1,0} parameter(0)
  %y = f8e4m3fn[4,2]{1,0} parameter(1)
  %z = bf16[4,2]{1,0} parameter(2)
  %wide = bf16[2,4]{1,0} convert(%x)
  %one = bf16[2,2]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %two = bf16[2,2]{1,0} custom-call(%x, %y), custom_call_target="__cublas$lt$matmul$f8"
  ROOT %three = bf16[2,2]{1,0} dot(%wide, %z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    assert products_of(program) == (3, 2)


def test_the_page_in_docs_is_what_the_record_says(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "page.md"
    written.write_text(PAGE.read_text())
    gpu_compiled.write_page(page=written)
    assert written.read_text() == PAGE.read_text()
    for record in read_records(["gpu_compiled"]):
        assert as_markdown(record) in PAGE.read_text()
        assert {row["network"] for row in record["programs"]} <= set(NETWORKS)
        assert {"jax", "jaxlib", "keras", "mixtrain"} <= set(record["versions"]) and json.dumps(record)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
@pytest.mark.parametrize("index", range(3), ids=["mixtrain", "keras", "hand"])
def test_the_step_that_is_compiled_is_one_of_the_contenders(index: int) -> None:
    """Traced here for a GPU; only the compiler for it is missing."""
    from benchmarks.gpu_compiled_step import step_of

    workload = dataclasses.replace(LENET, batch=2)
    step = step_of(FORMATS["float16"][index], workload)
    program = str(step.jitted.trace(*step.arguments).jaxpr)
    assert program.count("conv_general_dilated") >= 5 and "f16[2,28,28,6]" in program
