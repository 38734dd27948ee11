"""The six models of the repository as data.

Names, types and sizes are those of upstream's inflight_batcher_llm templates (TensorRT-LLM 1.x names: `min_tokens`, `seed`) without the
multimodal, encoder, LoRA, prompt-table and guided-decoding tensors. What Tandem adds is optional.
"""

from collections.abc import Iterable

from builder.packaging.plan import PackagePlan
from builder.packaging.values import DataType, DynamicBatching, EnsembleStep, Model, Tensor

EXECUTOR_WORKER = "/opt/tritonserver/backends/tensorrtllm/trtllmExecutorWorker"
ENGINE_BACKEND, PYTHON_BACKEND = "tensorrtllm", "python"


def _of(
    data_type: DataType, names: str, *dims: int, optional: bool = True, scalar: bool = False, ragged: bool = False
) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, data_type, dims or (1,), optional, scalar, ragged) for name in names.split())


def _outputs(data_type: DataType, names: str, *dims: int) -> tuple[Tensor, ...]:
    return _of(data_type, names, *dims, optional=False)


def _preprocessing_inputs() -> tuple[Tensor, ...]:
    return (
        *_of("STRING", "QUERY", optional=False),
        *_of("INT32", "REQUEST_OUTPUT_LEN", optional=False),
        *_of("STRING", "BAD_WORDS_DICT STOP_WORDS_DICT", -1),
        *_of("INT32", "END_ID PAD_ID"),
        *_of("BOOL", "APPLY_CHAT_TEMPLATE"),
    )


PREPROCESSING_OUTPUTS = (
    *_outputs("INT32", "INPUT_ID DECODER_INPUT_ID REQUEST_OUTPUT_LEN", -1),
    *_outputs("INT32", "REQUEST_INPUT_LEN REQUEST_DECODER_INPUT_LEN OUT_END_ID OUT_PAD_ID"),
    *_outputs("INT32", "BAD_WORDS_IDS STOP_WORDS_IDS", 2, -1),
    *_outputs("FP32", "EMBEDDING_BIAS", -1),
)

POSTPROCESSING_INPUTS = (*_of("INT32", "TOKENS_BATCH", -1, -1, optional=False), *_of("INT32", "SEQUENCE_LENGTH", -1, optional=False))
POSTPROCESSING_OUTPUTS = _outputs("STRING", "OUTPUT", -1)


def _llm_inputs(logits: DataType) -> tuple[Tensor, ...]:
    return (
        *_of("INT32", "input_ids", -1, ragged=True),
        *_of("INT32", "input_lengths request_output_len", optional=False, scalar=True),
        *_of("INT32", "draft_input_ids decoder_input_ids", -1, ragged=True),
        *_of(logits, "draft_logits", -1, -1, ragged=True),
        *_of("INT32", "stop_words_list bad_words_list", 2, -1, ragged=True),
        *_of("FP32", "embedding_bias", -1, ragged=True),
        *_of("INT32", "num_return_sequences decoder_input_lengths end_id pad_id beam_width", scalar=True),
        *_of("INT32", "runtime_top_k runtime_top_p_reset_ids min_tokens", scalar=True),
        *_of("FP32", "draft_acceptance_threshold temperature runtime_top_p runtime_top_p_min runtime_top_p_decay", scalar=True),
        *_of("FP32", "len_penalty repetition_penalty presence_penalty frequency_penalty beam_search_diversity_rate", scalar=True),
        *_of("UINT64", "seed", scalar=True),
        *_of("BOOL", "early_stopping return_log_probs return_context_logits return_generation_logits", scalar=True),
        *_of("BOOL", "return_perf_metrics return_num_input_tokens return_num_output_tokens", scalar=True),
        *_of("BOOL", "exclude_input_in_output stop streaming", scalar=True),
    )


def _figures(logits: DataType) -> tuple[Tensor, ...]:
    """Outputs that the engines, the orchestrator and the ensemble have in common."""
    return (
        *_outputs("FP32", "cum_log_probs", -1),
        *_outputs("FP32", "output_log_probs", -1, -1),
        *_outputs(logits, "context_logits", -1, -1),
        *_outputs(logits, "generation_logits", -1, -1, -1),
        *_outputs("INT32", "batch_index sequence_index"),
        *_outputs("INT32", "kv_cache_alloc_new_blocks kv_cache_reused_blocks kv_cache_alloc_total_blocks"),
        *_outputs("INT64", "arrival_time_ns first_scheduled_time_ns first_token_time_ns last_token_time_ns"),
        *_outputs("FP32", "acceptance_rate"),
        *_outputs("INT32", "total_accepted_draft_tokens total_draft_tokens num_input_tokens num_output_tokens"),
    )


def _client_inputs() -> tuple[Tensor, ...]:
    """What a client may send to the orchestrator and to the ensemble."""
    return (
        *_of("STRING", "text_input", optional=False),
        *_of("INT32", "max_tokens", optional=False),
        *_of("STRING", "bad_words stop_words", -1),
        *_of("INT32", "end_id pad_id top_k min_tokens beam_width num_return_sequences"),
        *_of("FP32", "top_p temperature length_penalty repetition_penalty presence_penalty frequency_penalty"),
        *_of("UINT64", "seed"),
        *_of("BOOL", "return_log_probs return_context_logits return_generation_logits return_perf_metrics"),
        *_of("BOOL", "return_num_input_tokens return_num_output_tokens exclude_input_in_output stream apply_chat_template"),
    )


_SPECULATION_INPUTS = (*_of("INT32", "num_draft_tokens"), *_of("BOOL", "use_draft_logits"), *_of("BOOL", "lookup"))
_SPECULATION_OUTPUTS = (
    *_outputs("INT32", "output_ids", -1),
    *_outputs("INT32", "num_rounds total_lookup_tokens total_accepted_lookup_tokens"),
    *_outputs("INT64", "draft_time_us target_time_us"),
)


def preprocessing(plan: PackagePlan) -> Model:
    """Text to token ids."""
    parameters = {"tokenizer_dir": str(plan.installed_tokenizer), "add_special_tokens": _word(plan.add_special_tokens)}
    return Model(
        "preprocessing", plan.max_batch_size, _preprocessing_inputs(), PREPROCESSING_OUTPUTS, PYTHON_BACKEND, parameters=parameters
    )


def postprocessing(plan: PackagePlan) -> Model:
    """Token ids to text."""
    parameters = {"tokenizer_dir": str(plan.installed_tokenizer), "skip_special_tokens": "true"}
    return Model(
        "postprocessing", plan.max_batch_size, POSTPROCESSING_INPUTS, POSTPROCESSING_OUTPUTS, PYTHON_BACKEND, parameters=parameters
    )


def _engine_model(plan: PackagePlan, name: str, engine_dir: str, pool_tokens: int) -> Model:
    """`decoupled` stays false: with decoupled engine models, many calls at once crash Triton's Python stub (server issue 8922)."""
    parameters = {
        "FORCE_CPU_ONLY_INPUT_TENSORS": "no",
        "batch_scheduler_policy": "guaranteed_no_evict",
        "enable_chunked_context": "true",
        "enable_kv_cache_reuse": _word(plan.reuse),
        "exclude_input_in_output": "true",
        "executor_worker_path": EXECUTOR_WORKER,
        "gpt_model_path": engine_dir,
        "gpt_model_type": "inflight_fused_batching",
        "kv_cache_host_memory_bytes": str(plan.host_offload_bytes),
        "max_beam_width": "1",
        "max_tokens_in_paged_kv_cache": str(pool_tokens),
    }
    return Model(
        name,
        plan.max_batch_size,
        _llm_inputs(plan.logits_data_type),
        (*_outputs("INT32", "output_ids", -1, -1), *_outputs("INT32", "sequence_length", -1), *_figures(plan.logits_data_type)),
        ENGINE_BACKEND,
        dynamic_batching=DynamicBatching(plan.max_batch_size, plan.max_queue_delay_us),
        parameters=parameters,
    )


def tensorrt_llm(plan: PackagePlan) -> Model:
    """The target engine."""
    return _engine_model(plan, "tensorrt_llm", str(plan.target_engine_dir), plan.target_pool_tokens)


def tensorrt_llm_draft(plan: PackagePlan) -> Model:
    """The draft engine."""
    return _engine_model(plan, "tensorrt_llm_draft", str(plan.draft_engine_dir), plan.draft_pool_tokens)


def tensorrt_llm_bls(plan: PackagePlan, *, end_ids: Iterable[int], max_sequence_tokens: int, shared_vocab_size: int | None = None) -> Model:
    """The orchestrator, the model that clients should call. `shared_vocab_size`: token ids that both engines have."""
    parameters = {
        "accumulate_tokens": "false",
        "adaptive": _word(plan.adaptive),
        "end_ids": ",".join(str(token) for token in end_ids),
        "lookup": _word(plan.lookup),
        "max_concurrent_requests": str(plan.max_concurrent_requests),
        "max_input_tokens": "" if plan.max_input_tokens is None else str(plan.max_input_tokens),
        "max_sequence_tokens": str(max_sequence_tokens),
        "num_draft_tokens": str(plan.num_draft_tokens),
        "shared_vocab_size": "" if shared_vocab_size is None else str(shared_vocab_size),
        "tensorrt_llm_draft_model_name": "" if plan.draft_engine_dir is None else "tensorrt_llm_draft",
        "tensorrt_llm_model_name": "tensorrt_llm",
        "tokenizer_dir": str(plan.installed_tokenizer),
    }
    return Model(
        "tensorrt_llm_bls",
        plan.max_batch_size,
        (*_client_inputs(), *_SPECULATION_INPUTS),
        (*_outputs("STRING", "text_output", -1), *_figures(plan.logits_data_type), *_SPECULATION_OUTPUTS),
        PYTHON_BACKEND,
        decoupled=True,
        parameters=parameters,
    )


_SAME_NAME_INPUTS = (
    "temperature",
    "repetition_penalty",
    "min_tokens",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "return_log_probs",
    "return_context_logits",
    "return_generation_logits",
    "return_perf_metrics",
    "return_num_input_tokens",
    "return_num_output_tokens",
    "beam_width",
    "num_return_sequences",
    "exclude_input_in_output",
)
_BEFORE = {
    "QUERY": "text_input",
    "REQUEST_OUTPUT_LEN": "max_tokens",
    "BAD_WORDS_DICT": "bad_words",
    "STOP_WORDS_DICT": "stop_words",
    "END_ID": "end_id",
    "PAD_ID": "pad_id",
    "APPLY_CHAT_TEMPLATE": "apply_chat_template",
}
_BETWEEN = {
    "INPUT_ID": ("_INPUT_ID", "input_ids"),
    "REQUEST_INPUT_LEN": ("_REQUEST_INPUT_LEN", "input_lengths"),
    "REQUEST_OUTPUT_LEN": ("_REQUEST_OUTPUT_LEN", "request_output_len"),
    "OUT_END_ID": ("_OUT_END_ID", "end_id"),
    "OUT_PAD_ID": ("_OUT_PAD_ID", "pad_id"),
    "STOP_WORDS_IDS": ("_STOP_WORDS_IDS", "stop_words_list"),
    "BAD_WORDS_IDS": ("_BAD_WORDS_IDS", "bad_words_list"),
}
_RENAMED = {"runtime_top_k": "top_k", "runtime_top_p": "top_p", "len_penalty": "length_penalty", "streaming": "stream"}


def ensemble(plan: PackagePlan) -> Model:
    """The plain path without drafts and without streaming."""
    figures = _figures(plan.logits_data_type)
    engine_inputs = {engine: shared for shared, engine in _BETWEEN.values()} | _RENAMED | {name: name for name in _SAME_NAME_INPUTS}
    engine_outputs = {"output_ids": "_TOKENS_BATCH", "sequence_length": "_SEQUENCE_LENGTH"} | {each.name: each.name for each in figures}
    steps = (
        EnsembleStep("preprocessing", _BEFORE, {name: shared for name, (shared, _) in _BETWEEN.items()}),
        EnsembleStep("tensorrt_llm", engine_inputs, engine_outputs),
        EnsembleStep("postprocessing", {"TOKENS_BATCH": "_TOKENS_BATCH", "SEQUENCE_LENGTH": "_SEQUENCE_LENGTH"}, {"OUTPUT": "text_output"}),
    )
    return Model("ensemble", plan.max_batch_size, _client_inputs(), (*_outputs("STRING", "text_output", -1), *figures), steps=steps)


def _word(value: bool) -> str:
    return "true" if value else "false"
