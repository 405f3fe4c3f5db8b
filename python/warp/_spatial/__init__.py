"""What is better said in Python of the objects that kernels reach by ids."""
