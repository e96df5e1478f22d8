"""The groups that the published megatron-core builds, by name and in its order: a test's oracle.

`initialize_model_parallel` runs as published, in one process: what it would create by
torch.distributed.new_group is written down instead.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from unittest import mock

import pytest
import torch.distributed as dist

NAMES = {
    "TENSOR_MODEL_PARALLEL_GROUP": "tp",
    "CONTEXT_PARALLEL_GROUP": "cp",
    "DATA_PARALLEL_GROUP": "dp",
    "DATA_PARALLEL_GROUP_WITH_CP": "dp-cp",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pp",
    "MODEL_PARALLEL_GROUP": "tp-pp",
    "TENSOR_AND_CONTEXT_PARALLEL_GROUP": "tp-cp",
    "TENSOR_AND_DATA_PARALLEL_GROUP": "tp-dp",
    "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": "tp-dp-cp",
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_TENSOR_PARALLEL_GROUP": "expert-tp",
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "expert-tp-ep",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": "expert-tp-ep-pp",
    "EXPERT_DATA_PARALLEL_GROUP": "expert-dp",
    "EMBEDDING_GROUP": "embedding",
    "POSITION_EMBEDDING_GROUP": "position_embedding",
}


def parallel_state() -> types.ModuleType:
    """megatron.core.parallel_state without the rest of the package, which takes seconds."""
    if "megatron.core.parallel_state" not in sys.modules:
        pytest.importorskip("megatron", reason="megatron-core is not installed")
        spec = importlib.util.find_spec("megatron.core")
        if spec is None:
            pytest.skip("megatron-core is not installed")
        package = types.ModuleType("megatron.core")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["megatron.core"] = package
    return importlib.import_module("megatron.core.parallel_state")


def published_groups(world_size, tp=1, cp=1, ep=1, pp=1, expert_tp=None, order="tp-cp-ep-dp-pp"):
    """Lists of ranks by our names. Raises what Megatron raises: RuntimeError or AssertionError."""
    state, found = parallel_state(), {name: [] for name in NAMES.values()}

    def new_group(ranks, group_desc, **_):
        if group_desc in NAMES:
            found[NAMES[group_desc]].append(list(ranks))

    with (
        mock.patch.object(dist, "is_initialized", return_value=True),
        mock.patch.object(dist, "get_world_size", return_value=world_size),
        mock.patch.object(dist, "get_rank", return_value=world_size),  # a rank of no group
        mock.patch.object(dist, "new_group", new_group),
    ):
        try:
            state.initialize_model_parallel(
                tensor_model_parallel_size=tp,
                context_parallel_size=cp,
                expert_model_parallel_size=ep,
                pipeline_model_parallel_size=pp,
                expert_tensor_parallel_size=expert_tp,
                order=order,
                create_gloo_process_groups=False,
            )
        finally:
            state.destroy_model_parallel()
    return found
