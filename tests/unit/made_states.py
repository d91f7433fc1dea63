"""Hidden states made for tests, in memory as after a run."""

import numpy as np

from shape_of_learning.estimators.massive import find_massive_in_any_state

TOKEN_TYPES = 700


class MadeStates:
    """States of windows of equal length; the first of every fifty tokens is a special one."""

    def __init__(self, *states, windows=20, has_state_before_norm=False):
        self.states = [state.astype(np.float32) for state in states]
        self.layers = len(states) - 1 - has_state_before_norm
        tokens = np.arange(len(states[0]))
        self.rows = {
            "positions": tokens % 50,
            "token_ids": tokens % TOKEN_TYPES,
            "windows": tokens * windows // len(tokens),
            "special": tokens % 50 == 0,
        }

    def __getitem__(self, state):
        return self.states[state]

    @property
    def massive(self):
        return find_massive_in_any_state(self.states)
