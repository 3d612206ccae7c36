"""A file mapped read-only into memory: no read is copied before it is needed, and pages can be given back.

Owns: the mapping.   Does not own: any format.
Invariant: views outlive `close`; the memory is unmapped when the last of them is gone.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from octavo.base.errors import LoadError
from octavo.base.units import align_up

ByteArray = npt.NDArray[np.uint8]


class MappedFile:
    """Raises LoadError when the file cannot be opened or is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                if self.size == 0:
                    raise LoadError(f"{path}: the file is empty")
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise LoadError(f"{path}: cannot be read ({error.strerror or error})") from error

    def view(self, offset: int, num_bytes: int) -> ByteArray:
        """[num_bytes] uint8, read-only, no copy. The caller has checked the range."""
        return np.frombuffer(self.data, np.uint8, num_bytes, offset)

    def drop(self, offset: int, num_bytes: int) -> None:
        """Give the whole pages inside the range back to the system; they are read again if touched."""
        start = align_up(offset, mmap.PAGESIZE)
        stop = (offset + num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > start and not self.data.closed:
            self.data.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def close(self) -> None:
        """Unmap, or leave that to the last view still in use. Safe to call twice."""
        try:
            self.data.close()
        except BufferError:
            # numpy views are alive: the mapping goes with the last of them.
            return
