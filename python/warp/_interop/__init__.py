"""Adapters to other libraries, one module each. None is imported before a program uses it, and none imports its library
before it has to."""
