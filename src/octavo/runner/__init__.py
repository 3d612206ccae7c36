"""One forward step on one device: rows, batches, sampling."""

from octavo.runner.runner import ModelRunner as ModelRunner
from octavo.runner.warmup import make_warmup_plans as make_warmup_plans
