"""What looks like a secret leaves a line of a log; what explains a failure stays."""

import pytest

from pardbg.collectors.parsing.rank_log import parse_rank_log
from pardbg.collectors.probe.secrets import hide_secrets


@pytest.mark.parametrize(
    "secret",
    [
        "login failed with token=PLANTED",
        "bad credentials: 'api_key': 'PLANTED'",
        "HF_TOKEN is PLANTED",
        "password: PLANTED",
        "GET https://mia:PLANTED@store.example/x failed",
        "Authorization: Bearer PLANTED123",
        "AWS_SECRET_ACCESS_KEY=PLANTED/abc",
        "refused hf_PLANTEDabcdef0123",
        "refused AKIAPLANTED123456789",
        "refused PLANTED0123456789abcdef0123456789abcdef",
    ],
)
def test_secret_is_hidden(secret: str) -> None:
    hidden = hide_secrets(f"RuntimeError: {secret}")
    assert "PLANTED" not in hidden
    assert hidden.startswith("RuntimeError: ")


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-00012-of-01024.tar'",
        "ValueError: expected key padding_mask of shape [8, 512] but got [8, 511]",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms (n1, 29500)",
        "KeyError: 'model.layers.12.mlp.experts.gate_up_proj.weight'",
    ],
)
def test_what_explains_a_failure_stays(line: str) -> None:
    assert hide_secrets(line) == line


def test_traceback_of_a_log_keeps_no_secret() -> None:
    log = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\nRuntimeError: token=PLANTED refused\n'
    (found,) = parse_rank_log(log)
    assert found.traceback.exception == "RuntimeError: token=*** refused"
