"""Three families of transformers, trained for real in this process: what is ill is told of the right layer, and only that."""

from typing import Any

import pytest
import torch

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.model_watch import RoutingWatch
from tests.moe.jobs.text import Text
from tests.probe.routing.test_families import LATENT, SMALL
from tests.probe.routing.watched import Watched, watching

transformers = pytest.importorskip("transformers")

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "mixtral": ("Mixtral", {"num_local_experts": 8, "router_aux_loss_coef": 0.05, "output_router_logits": True}),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 8, "head_dim": 8, "router_aux_loss_coef": 0.05, "output_router_logits": True}),
    "deepseek_v3": ("DeepseekV3", LATENT | {"n_group": 1, "topk_group": 1}),
}
LAYER, PLACE = 2, "model.layers.2.mlp.gate"
HEALTHY_STEPS, COLLAPSE_STEPS, FROZEN_STEPS = 90, 80, 12
BATCH, LENGTH = 8, 32
FEEDBACK, BALANCING_RATE = 0.04, 0.01


class Training:
    """One model, with the balancing that its family has: a loss, or for DeepSeek-V3 a bias."""

    def __init__(self, family: str, watched: Watched) -> None:
        name, special = FAMILIES[family]
        config = getattr(transformers, f"{name}Config")(**SMALL, **special)
        config._experts_implementation = "batched_mm"
        torch.manual_seed(0)
        self.model: Any = getattr(transformers, f"{name}ForCausalLM")(config).train()
        self.gates = {place: part for place, part in self.model.named_modules() if place.endswith("mlp.gate")}
        self.text = Text(0, 0, SMALL["vocab_size"], LENGTH)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.watched = watched
        self.watch = RoutingWatch()
        self.inputs: dict[str, torch.Tensor] = {}
        for place, gate in self.gates.items():
            gate.register_forward_pre_hook(lambda _, args, place=place: self.inputs.update({place: args[0].detach()}))

    def train(self, steps: int, *, is_unbalanced: bool = False) -> list[tuple[Kind, str]]:
        """What is told in any of these steps: kind and module."""
        told: set[tuple[Kind, str]] = set()
        for _ in range(steps):
            tokens = self.text.batch(BATCH)[:, :LENGTH]
            answer = self.model(input_ids=tokens, labels=tokens)
            aux = getattr(answer, "aux_loss", None)
            loss = (
                answer.loss - self.model.config.router_aux_loss_coef * aux if is_unbalanced and aux is not None else answer.loss
            )
            loss.backward()
            self.optimizer.step()
            self.watched.end_step(self.optimizer)
            self.optimizer.zero_grad()
            series = self.watched.read(self.watched.step - 1)
            for row in series.rows:
                self._steer(series.names[row.layer], torch.tensor(row.counts), is_unbalanced=is_unbalanced)
            self.watch.feed(series.rows, series.names, series.frozen)
            told |= {(illness.kind, self.watch.names[illness.layer]) for illness in self.watch.illnesses}
        return sorted(told)

    def _steer(self, place: str, counts: torch.Tensor, *, is_unbalanced: bool) -> None:
        gate, excess = self.gates[place], counts / counts.float().mean() - 1
        bias = getattr(gate, "e_score_correction_bias", None)
        if bias is not None and not is_unbalanced:
            bias -= BALANCING_RATE * excess.sign()
        elif bias is not None and place == PLACE:
            bias += FEEDBACK * excess
        elif is_unbalanced and place == PLACE:  # all tokens have the mean of them in common: what is added there acts as a bias
            mean = self.inputs[place].flatten(0, -2).mean(0)
            with torch.no_grad():
                gate.weight += FEEDBACK * excess.unsqueeze(1) * mean / mean.square().sum()


@pytest.mark.parametrize(
    "family", ["mixtral", *(pytest.param(each, marks=pytest.mark.slow) for each in ("qwen3_moe", "deepseek_v3"))]
)
def test_what_is_ill_in_a_family_is_told_of_the_right_layer(family: str) -> None:
    with watching() as watched:
        training = Training(family, watched)

        assert training.train(HEALTHY_STEPS) == []

        training.gates[PLACE].weight.requires_grad_(False)  # noqa: FBT003 - torch's own
        assert training.train(FROZEN_STEPS) == [(Kind.ROUTER_NO_GRADIENT, PLACE)]
        training.gates[PLACE].weight.requires_grad_(True)  # noqa: FBT003 - torch's own
        training.train(FROZEN_STEPS)
        assert list(training.watch.illnesses) == []

        told = training.train(COLLAPSE_STEPS, is_unbalanced=True)
        assert {place for _, place in told} == {PLACE}
        assert training.watch.illnesses[0].kind is Kind.ROUTER_COLLAPSE
