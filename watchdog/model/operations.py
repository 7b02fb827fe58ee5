"""Operations by what they demand of their members. Names are those that flight recorders write, back-end prefix removed."""

EQUAL_SIZE_OPS = frozenset(
    {
        "all_reduce",
        "allreduce",
        "allreduce_coalesced",
        "all_reduce_barrier",
        "all_gather",
        "_all_gather_base",
        "_allgather_base",
        "all_gather_into_tensor",
        "all_gather_into_tensor_coalesced",
        "barrier",
        "broadcast",
        "reduce",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_tensor",
        "reduce_scatter_tensor_coalesced",
        "sparse_all_reduce",
        "ALLGATHER_coalesced",
        "_ALLGATHER_BASE_coalesced",
        "ALLREDUCE_coalesced",
        "BROADCAST_coalesced",
        "REDUCE_coalesced",
        "REDUCE_SCATTER_coalesced",
        "_REDUCE_SCATTER_BASE_coalesced",
    }
)
ALL_TO_ALL_OPS = frozenset({"all_to_all", "all_to_all_base", "alltoall", "alltoall_base"})
ROOTED_OPS = frozenset({"broadcast", "reduce", "gather", "scatter"})
LISTING_OPS = frozenset({"gather", "scatter"})
"""Their root hands over a tensor for every member."""

DEVICE_BACKENDS = frozenset({"nccl", "nccl2", "ncclx", "rccl", "rcclx", "xccl", "hccl"})
P2P_OPS = frozenset({"send", "recv", "isend", "irecv", "recvAnySource", "recv_any_source"})
