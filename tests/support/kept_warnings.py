"""Weft's warnings as a list, for the tests that look at them."""

import warp as wp


class Warnings:
    """``with``: the list of Weft's warnings inside of the block."""

    def __enter__(self):
        class Kept:
            found = []

            def debug(self, message):
                pass

            def warning(self, message, category=None, stacklevel=1):
                self.found.append(message)

            info = error = debug

        self._scope = wp.ScopedLogger(Kept())
        return self._scope.__enter__().logger.found

    def __exit__(self, *error):
        self._scope.__exit__(*error)
