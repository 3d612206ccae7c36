"""Where steps run: the executor's interface and the one that runs in this process."""

from octavo.executor.inproc import InProcessExecutor as InProcessExecutor
from octavo.executor.interface import Executor as Executor
