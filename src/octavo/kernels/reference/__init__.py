"""The reference back end: the op table in numpy, obvious before fast. Every other back end is measured against it."""

from octavo.kernels.reference.table import ReferenceOps

__all__ = ["ReferenceOps"]
