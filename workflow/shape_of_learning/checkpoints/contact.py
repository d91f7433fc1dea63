"""The first answer of the Hub: without a network an error comes within seconds, before all tries are over."""

import contextvars
import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

from huggingface_hub import constants

from shape_of_learning.errors import UnreachableError, hide_secrets

logger = logging.getLogger(__name__)

FIRST_ANSWER_SECONDS = 10.0  # in which the first answer of this process must come
SILENCE_SECONDS = 2.0  # after which the log names the server that is slow
# If a first question got no answer, questions within this time have only a second.
NEW_CHANCE_SECONDS = 60.0

Result = TypeVar("Result")


class Contact:
    """The time of the first answer to this process, which decides how long the process waits for others."""

    def __init__(self) -> None:
        self._answer = threading.Event()
        self._deadline = -math.inf

    def note_answer(self, _: object = None) -> None:
        """Remember that a server has answered, with success or an error."""
        self._answer.set()

    def listen(self) -> None:
        """Note the answers to the client's session from now on; after an error the client may have a new session."""
        from huggingface_hub import get_session  # which takes a second

        session = get_session()
        if self.note_answer not in session.event_hooks["response"]:
            hooks = [*session.event_hooks["response"], self.note_answer]
            session.event_hooks = {**session.event_hooks, "response": hooks}

    def is_out_of_time(self, pause: float) -> bool:
        """Return whether no answer has come yet, and a pause would be too long for one."""
        return not self._answer.is_set() and time.monotonic() + pause > self._deadline

    def ask_first(
        self, ask: Callable[[], Result], repository: str, revision: str, where: str
    ) -> Result:
        """Ask a question, with a limit of time until a server has answered any question.

        The question runs in its own thread, since the client's limits do not cover the resolution of a host name.
        """
        if self._answer.is_set() or constants.is_offline_mode():
            return ask()
        now = time.monotonic()
        if now > self._deadline + NEW_CHANCE_SECONDS:
            self._deadline = now + FIRST_ANSWER_SECONDS
        deadline = max(self._deadline, now + 1)
        answers: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put((ask(), None))
            except BaseException as error:
                answers.put((None, error))

        threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
        is_silent = True
        while True:
            seconds_left = None if self._answer.is_set() else deadline - time.monotonic()
            if seconds_left is not None and seconds_left <= 0:
                raise UnreachableError(
                    f"{endpoint()} cannot be reached for `{repository}` at revision `{revision}` (it has not "
                    "answered); check the network, HF_ENDPOINT and HF_TOKEN and run again, files that are "
                    "complete are kept",
                    where,
                )
            try:
                result, error = answers.get(
                    timeout=None if seconds_left is None else min(seconds_left, 0.25)
                )
            except queue.Empty:
                if is_silent and time.monotonic() - now > SILENCE_SECONDS:
                    is_silent = False
                    logger.warning("%s: waiting for an answer of %s", where, endpoint())
                continue
            if error is not None:
                raise error
            self._answer.set()
            return cast("Result", result)


CONTACT = Contact()


def endpoint() -> str:
    """Return the address of the Hub, without a password."""
    return hide_secrets(constants.ENDPOINT)
