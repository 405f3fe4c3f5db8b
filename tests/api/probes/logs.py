"""API-1.19, section 10: logging."""

import warnings

import warp as wp
from probing import output


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


def scoped_level():
    before = wp.config.log_level
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        inside = wp.config.log_level
    return inside, wp.config.log_level == before


def logger_is_a_protocol():
    return wp.Logger()


def logger_without_a_method():
    wp.set_logger(object())


def logger_that_is_set():
    kept = _Kept()
    wp.set_logger(kept)
    same = wp.get_logger() is kept
    wp.set_logger(None)
    return same, wp.get_logger() is kept


def scoped_logger():
    kept = _Kept()
    with wp.ScopedLogger(kept) as scope:
        return scope.logger is kept, wp.get_logger() is kept


def default_logger_writes():
    with output(log_level=10) as lines:
        logger = wp.get_logger()
        logger.debug("one")
        logger.info("two")
        logger.error("three")
    return lines


def launches_are_logged():
    @wp.kernel(module="unique")
    def kernel(n: int):
        pass

    kept = _Kept()
    wp.config.print_launches = True
    with wp.ScopedLogger(kept):
        wp.launch(kernel, dim=1, inputs=[1])
    return any("kernel" in message for level, message in kept.lines if level == "info")


def warnings_of_the_default_logger():
    with output(log_level=20) as lines:
        logger = wp.get_logger()
        logger.warning("one")
        logger.warning("two", category=RuntimeWarning)
        logger.warning("three", RuntimeWarning, 2)
    return lines


def dropped_category():
    with output(log_level=20) as lines:
        warnings.simplefilter("ignore", RuntimeWarning)
        wp.get_logger().warning("one", category=RuntimeWarning)
    return lines


def category_that_is_an_error():
    warnings.simplefilter("error", RuntimeWarning)
    wp.get_logger().warning("one", category=RuntimeWarning)


def default_logger_has_no_level():
    with output(log_level=40) as lines:
        wp.get_logger().info("one")
    return lines


def any_object_with_the_methods_is_a_logger():
    return isinstance(_Kept(), wp.Logger), isinstance(object(), wp.Logger), isinstance(wp.get_logger(), wp.Logger)


def scoped_default_logger():
    kept = _Kept()
    wp.set_logger(kept)
    with wp.ScopedLogger(None) as scope:
        inside = wp.get_logger() is kept
    after = wp.get_logger() is kept
    wp.set_logger(None)
    return scope.logger, inside, after


def scoped_logger_without_a_method():
    wp.ScopedLogger(object())


def timers_are_logged():
    kept = _Kept()
    with wp.ScopedLogger(kept):
        with wp.ScopedTimer("work"):
            pass
    return [(level, message.partition(" took ")[0]) for level, message in kept.lines]


def timers_are_logged_at_any_level():
    kept = _Kept()
    wp.config.log_level = 40
    with wp.ScopedLogger(kept):
        with wp.ScopedTimer("work"):
            pass
    return len(kept.lines)
