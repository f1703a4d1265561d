"""Log probabilities: made up, and such as a model would tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Final

from antiphon.core.tokens import CHARACTERS_PER_TOKEN
from antiphon.v1.content_pb2 import OutputTextLogprob, OutputTextTopLogprob

__all__ = ["logprobs"]

_OTHERS: Final = (
    " the", " a", " and", " of", " to", " in", " is", " it", " for", " on", " as", " with",
    " at", " by", " an", " be", " or", " this", " that", ",", ".", "\n",
)  # fmt: skip


def logprobs(text: str, top: int, random: Random) -> Sequence[OutputTextLogprob]:
    """Returns the log probabilities of the tokens of a text.

    Args:
        text: the text.
        top: how many likely tokens are told for each place.
        random: what they come from. The tokens of a place are never more than certain together,
            and the one that was written is the likeliest.
    """
    size = CHARACTERS_PER_TOKEN
    tokens = [text[at : at + size] for at in range(0, len(text), size)]
    return [_logprob(token, top, random) for token in tokens]


def _logprob(token: str, top: int, random: Random) -> OutputTextLogprob:
    share = 0.55 + 0.44 * random.random()
    made = OutputTextLogprob(token=token, bytes=token.encode(), logprob=math.log(share))
    others = [other for other in random.sample(_OTHERS, len(_OTHERS)) if other != token]
    left = 1 - share
    for place, likely in enumerate([token, *others][:top]):
        if place:
            # Each of the others gets half of what is left, so that they never reach one.
            share = left = left / 2
        made.top_logprobs.append(
            OutputTextTopLogprob(token=likely, bytes=likely.encode(), logprob=math.log(share))
        )
    return made
