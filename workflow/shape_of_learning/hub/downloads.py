"""Files of a checkpoint on their way from the Hub to a folder."""

import json
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from huggingface_hub import constants, hf_hub_url

from shape_of_learning.errors import InputError
from shape_of_learning.hub.fingerprint import Fingerprint
from shape_of_learning.hub.hub_cache import adopt, cached_file, can_be_linked
from shape_of_learning.hub.hub_errors import explained, lacking
from shape_of_learning.hub.part import Part, part_of
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision
from shape_of_learning.hub.retries import FIRST_PAUSE
from shape_of_learning.hub.transfer import transfer
from shape_of_learning.storage.files import DISK_FULL, require_space

logger = logging.getLogger(__name__)

PARALLEL_FILES = 4  # one connection rarely fills a line; more would only crowd out other jobs
PROGRESS_SECONDS = 30.0  # between two lines of the log


class Downloads:
    """Files of one checkpoint, in a folder that outlives the run so that the next goes on with it.

    They are apart by commit, so that a branch that has moved never mixes with the old one. A file is
    there under its name only when its size and hash are those that the Hub lists.

    Parameters
    ----------
    folder : Path
        Where they gather.
    where : str
        How errors and the log name the model's entry.
    first_pause : float
        Seconds before a failed request is made again, as :func:`.with_retries` takes it.

    Attributes
    ----------
    entries : dict
        File -> its size and SHA-256, for all that are complete.
    """

    def __init__(self, folder: Path, where: str, first_pause: float = FIRST_PAUSE) -> None:
        self.folder = folder
        self.where = where
        self.first_pause = first_pause
        self.entries: dict[Path, dict[str, int | str]] = {}
        self._stopping = threading.Event()

    def file(self, source: RemoteRevision, path: str) -> Path:
        """Get one file, from an earlier run, the user's Hugging Face cache or the Hub.

        Raises
        ------
        InputError
            If the revision has no such file, it arrives damaged twice, the disk is full, or the Hub
            refuses or cannot be reached.
        """
        if path not in source.files:
            raise lacking(source.repository, source.revision, f"no {path}", where=self.where)
        listed, final = source.files[path], self._final(source, path)
        if final not in self.entries:
            try:
                self.entries[final] = (
                    self._kept(final, listed)
                    or self._cached(source, final, listed)
                    or self._downloaded(source, final, listed)
                )
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                raise InputError(
                    f"{self.where}: the disk is full, {final.name} of {listed.bytes / 1e6:,.1f} MB could "
                    f"not be written to {final.parent}; free some space and run again, what arrived is kept"
                ) from error
        return final

    def json(self, source: RemoteRevision, path: str) -> dict[str, Any]:
        """Get and read a small JSON file that holds an object."""
        try:
            content = json.loads(self.file(source, path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            content = None
        if not isinstance(content, dict):
            raise InputError(
                f"{self.where}: {path} of `{source.repository}` at revision `{source.revision}` is not "
                "a JSON object; choose another revision"
            )
        return content

    def files(self, wanted: Sequence[tuple[RemoteRevision, str]]) -> list[Path]:
        """Get many files, some at a time; the first error stops the others and is raised.

        Raises
        ------
        InputError
            As :meth:`file` does, or before the first of them if they do not fit on the disk.
        """
        self._require_space(wanted)
        total = sum(source.files[path].bytes for source, path in wanted)
        with ThreadPoolExecutor(PARALLEL_FILES) as pool:
            pending = {pool.submit(self.file, source, path) for source, path in wanted}
            try:
                while pending:
                    done, pending = wait(pending, PROGRESS_SECONDS, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    here = sum(self._bytes_here(source, path) for source, path in wanted)
                    self._log(f"{here / 1e6:.1f} of {total / 1e6:.1f} MB")
            except BaseException:
                self._stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [self._final(source, path) for source, path in wanted]

    def _kept(self, final: Path, listed: RemoteFile) -> dict[str, int | str] | None:
        if not final.exists():
            return None
        fingerprint = Fingerprint.of(final, listed)
        if not fingerprint.agrees():
            final.unlink()
            return None
        self._log(f"{listed.path} is complete from an earlier run")
        return fingerprint.entry()

    def _cached(
        self, source: RemoteRevision, final: Path, listed: RemoteFile
    ) -> dict[str, int | str] | None:
        cached = cached_file(source, listed.path)
        if cached is None:
            return None
        entry = adopt(cached, final, listed)
        if entry is not None:
            self._log(f"{listed.path} is taken from the Hugging Face cache, {cached}")
            return entry
        self._log(f"{cached} in the Hugging Face cache is damaged and not used")
        if constants.is_offline_mode():
            raise InputError(
                f"{self.where}: {listed.path} of `{source.repository}` is damaged in the Hugging Face "
                f"cache, {cached}; delete it and run once without HF_HUB_OFFLINE"
            )
        return None

    def _downloaded(
        self, source: RemoteRevision, final: Path, listed: RemoteFile
    ) -> dict[str, int | str]:
        url = hf_hub_url(source.repository, listed.path, revision=source.commit)
        for _ in range(2):
            with Part(final, listed) as part:
                self._log(f"{listed.path} begins at byte {part.bytes} of {listed.bytes}")
                with explained(
                    source.repository, source.revision, where=self.where, key="revision"
                ):
                    transfer(url, part, first_pause=self.first_pause, stopping=self._stopping)
                entry = part.finish()
            if entry is not None:
                self._log(f"{listed.path} is complete, {listed.bytes / 1e6:.1f} MB")
                return entry
            self._log(f"{listed.path} arrived damaged")
        raise InputError(
            f"{self.where}: {listed.path} of `{source.repository}` arrived damaged twice, its size or "
            "hash is not what the Hub lists; run again to download it anew"
        )

    def _require_space(self, wanted: Sequence[tuple[RemoteRevision, str]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        needed = 0
        for source, path in wanted:
            cached = cached_file(source, path)
            if cached is None or not can_be_linked(cached, self.folder):
                needed += max(0, source.files[path].bytes - self._bytes_here(source, path))
        try:
            require_space(self.folder.parent, needed)
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None

    def _bytes_here(self, source: RemoteRevision, path: str) -> int:
        final = self._final(source, path)
        for file in (final, part_of(final)):
            try:
                return file.stat().st_size
            except FileNotFoundError:
                continue
        return 0

    def _final(self, source: RemoteRevision, path: str) -> Path:
        return self.folder / source.commit / path

    def _log(self, message: str) -> None:
        logger.info("%s: %s", self.where, message)
