"""A larger talker says what a smaller one said."""

from __future__ import annotations

import torch

from engine.model.configs import TalkerConfig
from engine.model.layers import Causal
from engine.model.talker import Talker
from training import model_config
from training.growth import grown


def test_the_recipes_talker_goes_on_where_a_smaller_one_was() -> None:
    torch.manual_seed(0)
    sizes = model_config.talker()
    sizes["intermediate_size"] -= 64
    sizes["num_hidden_layers"] -= 1
    sizes["code_predictor_config"]["intermediate_size"] -= 32
    sizes["code_predictor_config"]["num_hidden_layers"] -= 2
    small, large = Talker(TalkerConfig.from_dict(sizes)), Talker(model_config.talker_config())
    large.load_state_dict(grown(large, small.state_dict()))
    x = torch.randn(2, 5, model_config.WIDTH)
    codes = torch.randint(model_config.CODES, (4, model_config.CODEBOOKS))
    with torch.no_grad():
        hidden = [each(x, torch.arange(5)[None], Causal()) for each in (small, large)]
        torch.testing.assert_close(hidden[1], hidden[0], atol=1e-5, rtol=1e-4)
        logits = [each.predict(x[:, 0].repeat(2, 1), codes) for each in (small, large)]
        torch.testing.assert_close(logits[1], logits[0], atol=1e-5, rtol=1e-4)
