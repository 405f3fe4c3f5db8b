"""Colouring graphs: no two nodes of an edge get the same colour, so that work on one colour's nodes cannot collide."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._weft import array
from warp._weft import usage_error as _usage_error

__all__ = [
    "GraphColoringAlgorithm",
    "graph_coloring_assign",
    "graph_coloring_balance",
    "graph_coloring_get_groups",
]


class GraphColoringAlgorithm(enum.IntEnum):
    """In which order nodes get their colours: each takes the lowest that no neighbour has."""

    MCS = 0
    """Maximum cardinality search: next is the node with most coloured neighbours. Few colours."""
    GREEDY = 1
    """Nodes with more neighbours first. Quicker."""


def _host(api: str, name: str, value: Any, ndim: int) -> np.ndarray:
    if not isinstance(value, array):
        raise _usage_error(f"{api}: {name!r} must be a warp.array, got {type(value).__name__}", TypeError)
    if value.ndim != ndim or (ndim == 2 and value.shape[1] != 2):
        expected = "(n, 2)" if ndim == 2 else "(n,)"
        raise _usage_error(f"{api}: {name!r} has the shape {value.shape}, expected {expected}", RuntimeError)
    if value.dtype is not _weft.named_type("int32"):
        message = f"{name!r} is an array of {_weft.type_name(value.dtype)}, expected int32"
        raise _usage_error(f"{api}: {message}", RuntimeError)
    return value.numpy()


def _neighbours(api: str, edges: Any, colors: Any) -> tuple[np.ndarray, np.ndarray]:
    """The offset of each node's neighbours, and all of them; edges from a node to itself do not count."""
    pairs, n = _host(api, "edges", edges, 2), _host(api, "node_colors", colors, 1).size
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if outside.size:
        message = f"edge {outside[0]} joins the nodes {tuple(pairs[outside[0]].tolist())}, of nodes 0 to {n - 1}"
        raise _usage_error(f"{api}: {message}", RuntimeError)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    ends = np.unique(ends, axis=0) if ends.size else ends
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=n), out=starts[1:])
    return starts, ends[:, 1]


def _lowest_free(taken: set[int]) -> int:
    color = 0
    while color in taken:
        color += 1
    return color


def _by_most_coloured(starts: np.ndarray, others: np.ndarray) -> list[int]:
    """Maximum cardinality search: buckets of nodes by how many neighbours have their turn behind them."""
    n = len(starts) - 1
    buckets: list[set[int]] = [set(range(n))]
    weight, done, order, top = [0] * n, [False] * n, [], 0
    for _ in range(n):
        while not buckets[top]:
            top -= 1
        node = min(buckets[top])
        buckets[top].discard(node)
        done[node] = True
        order.append(node)
        for other in others[starts[node] : starts[node + 1]].tolist():
            if done[other]:
                continue
            buckets[weight[other]].discard(other)
            weight[other] += 1
            if weight[other] == len(buckets):
                buckets.append(set())
            buckets[weight[other]].add(other)
            top = max(top, weight[other])
    return order


def graph_coloring_assign(
    edges: array, node_colors: array, algorithm: GraphColoringAlgorithm = GraphColoringAlgorithm.MCS
) -> int:
    """Gives each node a colour that none of its neighbours has.

    Args:
        edges: an array of int32 of shape (n, 2): the nodes that each edge joins, in either order.
        node_colors: an array of int32 with one element for each node, which gets the colours: 0, 1, 2, ...
        algorithm: ``GraphColoringAlgorithm.MCS`` or ``GREEDY``.
    Returns:
        The number of colours.
    Raises:
        UsageError: an array has another shape or dtype, or an edge joins nodes that are not there.
    """
    api = "graph_coloring_assign()"
    try:
        chosen = GraphColoringAlgorithm(algorithm)
    except ValueError:
        message = f"algorithm is {algorithm!r}, expected a member of GraphColoringAlgorithm"
        raise _usage_error(f"{api}: {message}", ValueError) from None
    starts, others = _neighbours(api, edges, node_colors)
    n = len(starts) - 1
    if chosen == GraphColoringAlgorithm.MCS:
        order = _by_most_coloured(starts, others)
    else:
        order = np.argsort(-np.diff(starts), kind="stable").tolist()
    colors = np.full(n, -1, dtype=np.int32)
    for node in order:
        colors[node] = _lowest_free(set(colors[others[starts[node] : starts[node + 1]]].tolist()))
    node_colors.assign(colors)
    return int(colors.max(initial=-1)) + 1


def graph_coloring_balance(
    edges: array,
    node_colors: array,
    color_count: int,
    target_max_min_ratio: float,
    *,
    max_iterations: int | None = None,
) -> float:
    """Moves nodes from colours with many nodes to colours with few, as far as their neighbours allow.

    Args:
        edges, node_colors: as for ``graph_coloring_assign``, which gave the colours.
        color_count: the number of colours.
        target_max_min_ratio: stops when the largest group has no more than this times the nodes of the smallest.
        max_iterations: the most nodes that are moved.
    Returns:
        The nodes of the largest group divided by those of the smallest; infinite if a colour has none.
    Raises:
        UsageError: an array does not fit, or a colour is none of ``color_count``.
    """
    api = "graph_coloring_balance()"
    starts, others = _neighbours(api, edges, node_colors)
    colors = node_colors.numpy().copy()
    groups = [set(group.tolist()) for group in _groups(api, colors, color_count)]
    moves = 0
    while groups and (max_iterations is None or moves < max_iterations):
        sizes = [len(group) for group in groups]
        largest, smallest = max(sizes), min(sizes)
        if largest <= smallest * target_max_min_ratio or largest - smallest < 2:
            break
        if not _move_one(colors, groups, sizes, starts, others):
            break
        moves += 1
    node_colors.assign(colors)
    sizes = [len(group) for group in groups]
    return max(sizes, default=0) / min(sizes) if sizes and min(sizes) else float("inf")


def _move_one(
    colors: np.ndarray, groups: list[set[int]], sizes: list[int], starts: np.ndarray, others: np.ndarray
) -> bool:
    """Moves a node from a larger group to one that is smaller by two or more; False if no neighbours allow it."""
    by_size = sorted(range(len(groups)), key=sizes.__getitem__)
    for source in reversed(by_size):
        for target in by_size:
            if sizes[source] - sizes[target] < 2:
                break
            for node in sorted(groups[source]):
                if target not in colors[others[starts[node] : starts[node + 1]]]:
                    groups[source].discard(node)
                    groups[target].add(node)
                    colors[node] = target
                    return True
    return False


def _groups(api: str, colors: np.ndarray, color_count: int) -> list[np.ndarray]:
    if colors.size and not (colors.min() >= 0 and colors.max() < color_count):
        message = f"node_colors has colours from {colors.min()} to {colors.max()}, expected 0 to {color_count - 1}"
        raise _usage_error(f"{api}: {message}", ValueError)
    return [np.flatnonzero(colors == color).astype(np.int32) for color in range(color_count)]


def graph_coloring_get_groups(
    node_colors: array, color_count: int, return_wp_array: bool = True, device: Any = "cpu"
) -> tuple:
    """The nodes of each colour.

    Args:
        node_colors: an array of int32 with the colour of each node.
        color_count: the number of colours.
        return_wp_array: Weft arrays, else NumPy arrays.
        device: the device of the Weft arrays.
    Returns:
        A tuple with an array of int32 for each colour, its nodes in ascending order.
    Raises:
        UsageError: ``node_colors`` does not fit, or a colour is none of ``color_count``.
    """
    api = "graph_coloring_get_groups()"
    groups = _groups(api, _host(api, "node_colors", node_colors, 1), color_count)
    if not return_wp_array:
        return tuple(groups)
    return tuple(array(group, dtype=_weft.named_type("int32"), device=device) for group in groups)
