"""The Python part of the objects that kernels reach by ids."""
