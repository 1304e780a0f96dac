"""MindSpore names that are not available here: a table with what to write instead.

Such a name can be imported, so that a script that never uses it runs. Using it raises an error with the table's text.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Final

_PARALLEL: Final = "there is one device. Write the script without it"
_MINDRECORD: Final = "files of rows are written by FileWriter and read by MindDataset alone. Write those"
_COMPILER: Final = "it belongs to MindSpore's own compiler. Write mixtrain.jit"
_PRIMITIVE: Final = "this primitive is not offered. Write the functions of mixtrain.ops or keras.ops that it stands for"
_KERNEL: Final = "it makes kernels for MindSpore's own runtime. Write the function in mixtrain.ops or keras.ops"
_READER: Final = "no reader of its files. Write a class with __getitem__ and __len__, and GeneratorDataset"
_SCIPY: Final = "this function of SciPy's is not wrapped. Write scipy itself, with x.asnumpy()"
_CRYPTO: Final = "files are not encrypted or obfuscated. Write the plain file, and encrypt it with a tool of yours"
_RANDOM: Final = "samples of this kind are not drawn here. Write keras.random, or NumPy's generators in the dataset"
_RUNTIME: Final = "streams, memory and launches are the backend's own. Write the script without it"
_DEFECTS: Final = "devices are not searched for silent errors. Write the script without it"
_SAVED: Final = "what a gradient needs is kept by the backend. Write the function without it"
_LANDSCAPE: Final = "landscapes of losses are not computed. Write SummaryCollector without them"
_PROCESSES: Final = "what several processes do together are primitives. Write ops.AllReduce and its like"
_PROFILE: Final = "MindSpore's profiler does not see these backends. Write TensorFlow's or JAX's own profiler"

# By module, then by name; "*" stands for every other public name of a module without available names.
REFUSED: Final[Mapping[str, Mapping[str, str]]] = types.MappingProxyType({
    "mixtrain": {
        **dict.fromkeys(("Profiler", "flops_collection"), _PROFILE),
        **dict.fromkeys((
            "StreamLimitCtx", "memory_replay", "ms_memory_recycle", "set_cpu_affinity", "set_memory",
        ), _RUNTIME),
        **dict.fromkeys((
            "Cifar100ToMR", "Cifar10ToMR", "CsvToMR", "FileReader", "FileWriter", "ImageNetToMR", "MindPage",
            "MnistToMR", "TFRecordToMR",
        ), _MINDRECORD),
        **dict.fromkeys(("saved_tensors_hooks", "register_saved_tensors_hooks"), _SAVED),
        **dict.fromkeys(("load_mindir", "save_mindir"), "MINDIR graphs are not read or written. Write "
                        "export(..., file_format=\"SAVED_MODEL\")"),
        "SummaryLandscape": _LANDSCAPE,
        **dict.fromkeys((
            "transform_checkpoints", "transform_checkpoint_by_rank", "merge_pipeline_strategys",
            "rank_list_for_transform", "load_distributed_checkpoint", "merge_sliced_parameter",
            "build_searched_strategy", "reshard", "parameter_broadcast", "shard", "unified_safetensors",
            "restore_group_info_list", "sync_pipeline_shared_parameters",
        ), _PARALLEL),
        **dict.fromkeys(("obfuscate_ckpt", "load_obf_params_into_net", "obfuscate_model"), _CRYPTO),
        **dict.fromkeys(("Symbol", "set_dump", "MsDispatchMode", "enable_dynamic"), _COMPILER),
        "export_split_mindir": "MINDIR graphs are not written. Write export(..., file_format=\"SAVED_MODEL\")",
    },
    "mixtrain.ops": {
        **dict.fromkeys((
            "CustomRegOp", "CustomOpBuilder", "DataType", "TBERegOp", "AiCPURegOp", "AkgGpuRegOp",
            "CpuRegOp", "op_info_register", "custom_info_register", "kernel", "ms_kernel",
        ), _KERNEL),
        **dict.fromkeys((
            "get_vm_impl_fn", "vm_impl_registry", "J",
        ), _KERNEL),
        **dict.fromkeys((
            "AlltoAll", "NeighborExchange", "NeighborExchangeV2", "P2POp", "isend", "irecv", "TCPStore",
            "set_comm_ops_inplace",
        ), _PARALLEL),
        **dict.fromkeys((
            "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "barrier", "batch_isend_irecv",
            "broadcast", "gather_into_tensor", "init_process_group", "new_group", "recv", "reduce", "reduce_scatter",
            "reduce_scatter_tensor", "scatter_tensor", "send",
        ), _PROCESSES),
        "SampleDistortedBoundingBoxV2": _RANDOM,
        **dict.fromkeys((
            "NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUGetFloatStatus", "NPUClearFloatStatusV2",
            "NPUGetFloatStatusV2",
        ), "only an Ascend device keeps this flag. Write ops.FloatStatus, as scripts do for a GPU, or "
           "nn.TrainOneStepWithLossScaleCell"),
        **dict.fromkeys(("DynamicRNN", "DynamicGRUV2"), "it is an operator of Ascend. Write nn.LSTM or nn.GRU"),
        "FusedCastAdamWeightDecay": "it is an operator of a GPU. Write nn.AdamWeightDecay",
        **dict.fromkeys(("Pull", "Push"), _PARALLEL),
    },
    "mixtrain.nn": {
        "LazyAdam": "gradients are dense here, and every row is stepped. Write nn.Adam",
        **dict.fromkeys(("DenseThor", "Conv2dThor", "EmbeddingThor", "EmbeddingLookupThor"), "thor is not offered. "
                        "Write the layer of that name without Thor"),
        **dict.fromkeys(("VirtualDatasetCellTriple", "PipelineGradReducer", "grad_scale", "shard_grad_scale",
                         "AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell"), _PARALLEL),
        "GradAccumulationCell": "on one device MindSpore's trains nothing. Write Model(..., accumulate_steps=n)",
        "no_init_parameters": "values exist from the start. Write the network without it",
        "transformer": "it was moved to a library of its own. Write nn.MultiheadAttention and Cells",
    },
    "mixtrain.train": {
        "FlopsUtilizationCollector": _PROFILE,
        "TrainFaultTolerance": "it is for clusters of Ascend. Write ModelCheckpoint, and train(..., resume=...)",
        "SummaryLandscape": _LANDSCAPE,
        "ConvertNetUtils": "thor is not offered. Write nn.Momentum or nn.Lamb",
    },
    "mixtrain.ops.op_info_register": {"*": _KERNEL},
    "mixtrain.ops.module_primitives": dict.fromkeys((
        "ApplyKerasMomentum", "AvgPoolV1", "BasicLSTMCell", "BatchToSpace", "CopyWithSlice",
        "DenseToSparseSetOperation", "ExtractGlimpse", "GetNext", "HistogramFixedWidth", "KVCacheMgr", "LARSUpdate",
        "Lamb", "LambApplyOptimizerAssign", "LambApplyWeightAssign", "LogNormalReverse", "MatrixDiag", "MatrixDiagPart",
        "MatrixExp", "MatrixSetDiag", "MaxPoolV1", "Merge", "NonDeterministicInts", "NonMaxSuppressionV3",
        "ParameterizedTruncatedNormal", "Quant", "Quantile", "RaggedTensorToTensor", "ResizeV2", "SameTypeShape",
        "ScatterNonAliasingAdd", "SetSize", "SpaceToBatch", "SparseApplyAdadelta", "SparseApplyFtrlV2",
        "SparseApplyProximalAdagrad", "SparseCross", "SparseGatherV2", "SplitV", "SyncBatchNorm", "TopTypeof",
        "TransShape", "UniformExt",
    ), _PRIMITIVE),
    **dict.fromkeys((f"mixtrain.ops.operations.{part}" for part in (
        "_csr_ops", "_embedding_cache_ops", "_quant_ops", "_rl_inner_ops",
    )), {"*": _PRIMITIVE}),
    "mixtrain.ops.derivative_primitives": dict.fromkeys((
        "AvgPoolGradV1", "CholeskyGrad", "MaxPoolGradV1", "SyncBatchNormGrad",
    ), _PRIMITIVE),
    **dict.fromkeys((f"mixtrain.ops._grad_experimental.{part}" for part in (
        "grad_array_ops", "grad_base", "grad_math_ops",
    )), {"*": "gradients are the backend's. Write a Cell with bprop, or ops.GradOperation"}),
    **dict.fromkeys(("mixtrain.hal", "mixtrain.common.jit_begin_end", "mixtrain.common.file_system",
                     "mixtrain.hal.contiguous_tensors_handle"), {"*": _RUNTIME}),
    **dict.fromkeys((f"mixtrain.{path}" for path in (
        "_extends.parse.standard_method", "common._monad", "common._pijit_context", "ops.signature",
    )), {"*": _COMPILER}),
    "mixtrain.communication.comm_func": {"*": _PROCESSES},
    "mixtrain.mindrecord": dict.fromkeys((
        "FileReader", "MindPage", "Cifar100ToMR", "CsvToMR", "ImageNetToMR", "MnistToMR", "TFRecordToMR",
        "set_enc_key", "set_enc_mode", "set_hash_mode",
    ), _MINDRECORD),
    "mixtrain.mint.distributed": {
        **dict.fromkeys((
            "P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "recv_object_list", "send", "send_object_list",
        ), "processes exchange nothing in pairs. Write all_gather, broadcast or their like for objects"),
        **dict.fromkeys(("all_gather_into_tensor_uneven", "reduce_scatter_tensor_uneven"),
                        "parts of several sizes are not exchanged. Write parts of one size, padded"),
        "TCPStore": _PARALLEL,
    },
    "mixtrain.communication": dict.fromkeys((
        "create_group", "destroy_group", "get_group_rank_from_world_rank", "get_process_group_ranks",
        "get_world_rank_from_group_rank",
    ), "all processes are one group. Write the script without groups"),
    "mixtrain.train.serialization": {"_save_graph": _COMPILER},
    "mixtrain.ops.operations._inner_ops": {"AntiQuant": "numbers are not quantized by it. Write x * scale + offset"},
    "mixtrain._c_expression": {"*": "it is MindSpore's own library in C++. Write the script without it"},
    "mixtrain.device_context": {"*": "it sets options of MindSpore's devices. Write the script without it"},
    "mixtrain.runtime": {"*": _RUNTIME},
    "mixtrain.utils": dict.fromkeys(
        ("sdc_detect_start", "sdc_detect_stop", "get_sdc_detect_result", "stress_detect"), _DEFECTS
    ),
    **dict.fromkeys(("mixtrain.boost", "mixtrain.boost.grad_accumulation", "mixtrain.boost.boost_cell_wrapper"), {
        "*": "boost changes MindSpore's own kernels. Write amp_level=\"O2\"",
    }),
    **dict.fromkeys((
        "mixtrain.parallel", "mixtrain.parallel._cost_model_context", "mixtrain.parallel._utils",
        "mixtrain.parallel.auto_parallel", "mixtrain.parallel.nn",
    ), {
        "*": _PARALLEL,
    }),
    **dict.fromkeys((f"mixtrain.scipy{part}" for part in (
        ".ops_wrapper", ".sparse.linalg", ".utils",
    )), {"*": _SCIPY}),
    "mixtrain.profiler": {"*": _PROFILE},
    "mixtrain.rewrite": {"*": "no source of a network is rewritten. Write a subclass, or the cell that is replaced"},
    **dict.fromkeys((
        f"mixtrain.train.{name}_pb2" for name in ("anf_ir", "checkpoint", "lineage", "mind_ir", "summary")
    ), {"*": "it is of MindSpore's own files. Write load_checkpoint, or TensorBoard's EventFileReader for summaries"}),
    "mixtrain.dataset": {
        **dict.fromkeys((
            "Caltech101Dataset", "Caltech256Dataset", "CityscapesDataset", "DIV2KDataset", "FakeImageDataset",
            "FlickrDataset", "Flowers102Dataset", "Food101Dataset", "KITTIDataset", "LFWDataset", "LSUNDataset",
            "ManifestDataset", "OmniglotDataset", "PhotoTourDataset", "Places365Dataset", "RandomDataset",
            "SBDataset", "SBUDataset", "SemeionDataset", "STL10Dataset", "SUN397Dataset", "SVHNDataset",
            "USPSDataset", "WIDERFaceDataset", "CLUEDataset", "IMDBDataset", "WikiTextDataset", "PennTreebankDataset",
        ), _READER),
        **dict.fromkeys(("DSCallback", "WaitedDSCallback"), "a pipeline calls nobody back. Write a function of map"),
    },
    "mixtrain.dataset.text": {
        **dict.fromkeys((
            "AddToken", "BertTokenizer", "FilterWikipediaXML", "JiebaMode", "JiebaTokenizer", "Ngram",
            "SPieceTokenizerLoadType", "SPieceTokenizerOutType", "SentencePieceTokenizer", "SentencePieceVocab",
            "UnicodeScriptTokenizer", "WordpieceTokenizer",
        ), "this transform of text is not offered. Write it in Python, as a function of map"),
        **dict.fromkeys(("CharNGram", "FastText", "GloVe", "SentencePieceModel", "ToVectors", "Vectors"),
                        "files of word vectors are not read. Write an array of them, and nn.Embedding"),
    },
    "mixtrain.dataset.audio": {
        "*": "audio is not transformed here. Write the transform in Python, as a function of map",
    },
})


class _Refusing(type):
    """Metaclass of stubs: any use of one raises its error text."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(sentence(cls))


def sentence(stub: type) -> str:
    """Return the error text of a stub, or of a subclass of one."""
    stub = next(cls for cls in reversed(stub.__mro__) if isinstance(cls, _Refusing))
    return f"{stub.__module__}.{stub.__name__}: {vars(stub)['__doc__']}."


def stub(module: str, name: str) -> type | None:
    """Return the stub of a refused name, or None where the table has no such name.

    `module`: The module that it was looked up in. `name`: The name.
    """
    table = REFUSED.get(module, {})
    text = table.get(name, None if name.startswith("__") else table.get("*"))
    if text is None:
        return None

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(sentence(type(self)))

    return _Refusing(name, (), {"__init__": refuse, "__doc__": text, "__module__": module})


def is_refused(value: Any) -> bool:
    """Whether a value is a stub of a refused name."""
    return isinstance(value, _Refusing)
