"""What the processor is said to be good at, by what the system tells of it."""

from __future__ import annotations

import pathlib

import pytest

from mixtrain.backend import info as processor

INFO = "processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: A CPU\nflags\t\t: fpu {flags} avx2\n"


@pytest.mark.parametrize(
    ("vendor", "flags", "fast"),
    [
        ("GenuineIntel", "avx512_vnni", False),
        ("GenuineIntel", "avx512_bf16", True),  # Cooper Lake
        ("GenuineIntel", "avx512_bf16 avx512_fp16", False),  # Sapphire Rapids whose AMX is hidden
        ("GenuineIntel", "avx512_bf16 avx512_fp16 amx_tile amx_bf16", True),  # Sapphire Rapids
        ("AuthenticAMD", "avx512_bf16", True),  # Zen 4
        ("AuthenticAMD", "avx512_bf16 avx512_fp16", True),
        ("AuthenticAMD", "", False),
    ],
)
def test_bfloat16_is_fast_where_a_product_of_it_takes_less_time(vendor: str, flags: str, fast: bool) -> None:
    assert processor.fast_bfloat16(INFO.format(vendor=vendor, flags=flags)) == fast


def test_a_system_that_does_not_tell_of_its_processor_has_no_fast_bfloat16(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(processor, "_CPU_INFO", tmp_path / "none")
    assert processor.cpu_info() == ""
    assert not processor.fast_bfloat16(processor.cpu_info())


def test_the_field_of_the_first_processor_is_found() -> None:
    info = INFO.format(vendor="AuthenticAMD", flags="sse") * 2
    assert processor.cpu_field(info, "model name") == "A CPU"
    assert processor.cpu_field(info, "model") == ""
