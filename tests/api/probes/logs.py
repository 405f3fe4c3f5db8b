"""API-1.19, section 10: logging."""

import warp as wp
from probing import output, still_open


class _Kept:
    def __init__(self):
        self.lines = []

    def debug(self, message):
        self.lines.append(("debug", message))

    def info(self, message):
        self.lines.append(("info", message))

    def warning(self, message, category=None, stacklevel=1):
        self.lines.append(("warning", message))

    def error(self, message):
        self.lines.append(("error", message))


def levels():
    return wp.LOG_DEBUG, wp.LOG_INFO, wp.LOG_WARNING, wp.LOG_ERROR


@still_open("section 10")
def scoped_level():
    before = wp.config.log_level
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        inside = wp.config.log_level
    return inside, wp.config.log_level == before


@still_open("section 10")
def logger_is_a_protocol():
    return wp.Logger()


@still_open("section 10")
def logger_without_a_method():
    wp.set_logger(object())


@still_open("section 10")
def logger_that_is_set():
    kept = _Kept()
    wp.set_logger(kept)
    same = wp.get_logger() is kept
    wp.set_logger(None)
    return same, wp.get_logger() is kept


@still_open("section 10")
def scoped_logger():
    kept = _Kept()
    with wp.ScopedLogger(kept) as scope:
        return scope.logger is kept, wp.get_logger() is kept


@still_open("section 10")
def default_logger_writes():
    with output(log_level=10) as lines:
        logger = wp.get_logger()
        logger.debug("one")
        logger.info("two")
        logger.error("three")
    return lines


@still_open("section 10")
def launches_are_logged():
    @wp.kernel(module="unique")
    def kernel(n: int):
        pass

    kept = _Kept()
    wp.config.print_launches = True
    with wp.ScopedLogger(kept):
        wp.launch(kernel, dim=1, inputs=[1])
    return any("kernel" in message for level, message in kept.lines if level == "info")
