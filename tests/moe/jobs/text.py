"""Text that a small model can learn: each sequence has a topic, and each topic its habits of which character comes next."""

import torch
from torch import Tensor

TOPIC_COUNT = 8
_SHARPNESS = 2.5


class Text:
    """An endless text for one rank. Ranks with the same seed share the topics but not the sequences."""

    def __init__(self, seed: int, rank: int, vocabulary: int, length: int) -> None:
        habits = torch.Generator().manual_seed(seed)
        self._following = torch.softmax(_SHARPNESS * torch.randn(TOPIC_COUNT, vocabulary, vocabulary, generator=habits), dim=-1)
        self._dice = torch.Generator().manual_seed(1000 * (seed + 1) + rank)
        self._vocabulary = vocabulary
        self._length = length

    def batch(self, count: int) -> Tensor:
        """[count, length + 1] characters."""
        topic = torch.randint(TOPIC_COUNT, (count,), generator=self._dice)
        text = [torch.randint(self._vocabulary, (count,), generator=self._dice)]
        for _ in range(self._length):
            text.append(torch.multinomial(self._following[topic, text[-1]], 1, generator=self._dice).squeeze(1))
        return torch.stack(text, dim=1)


def skewed(text: Tensor) -> Tensor:
    """What a broken loader makes of it: sequences of one character over and over, of two in all."""
    return text[:, :1].expand_as(text) % 2
