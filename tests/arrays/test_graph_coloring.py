"""Colours of graphs: neighbours differ, groups are complete, balancing keeps both."""

import numpy as np
import pytest
import warp as wp

ALGORITHMS = list(wp.utils.GraphColoringAlgorithm)


def random_edges(n, count, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, (count, 2)).astype(np.int32)


def check(edges, colors, count):
    c = colors.numpy()
    apart = edges[edges[:, 0] != edges[:, 1]]
    assert (c[apart[:, 0]] != c[apart[:, 1]]).all() and sorted(set(c.tolist())) == list(range(count))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_neighbours_have_different_colours(algorithm):
    for seed in range(10):
        edges = random_edges(60, 150, seed)
        colors = wp.zeros(60, dtype=int)
        count = wp.utils.graph_coloring_assign(wp.array(edges, dtype=int), colors, algorithm)
        check(edges, colors, count)
        degrees = [len(set(edges[(edges == i).any(axis=1)].ravel().tolist()) - {i}) for i in range(60)]
        assert count <= max(degrees) + 1  # the bound of taking the lowest free colour


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_colours_of_known_graphs(algorithm):
    def colours_of(edges, n):
        colors = wp.zeros(n, dtype=int)
        return wp.utils.graph_coloring_assign(wp.array(edges, dtype=int).reshape((-1, 2)), colors, algorithm)

    assert colours_of([[i, i + 1] for i in range(9)], 10) == 2
    assert colours_of([[i, j] for i in range(5) for j in range(i)], 5) == 5
    assert wp.utils.graph_coloring_assign(wp.zeros((0, 2), dtype=int), wp.zeros(3, dtype=int), algorithm) == 1


def test_trees_and_chordal_graphs_take_the_fewest_colours():
    rng = np.random.default_rng(5)
    tree = np.array([[i, rng.integers(0, i)] for i in range(1, 200)], dtype=np.int32)
    assert wp.utils.graph_coloring_assign(wp.array(tree, dtype=int), wp.zeros(200, dtype=int)) == 2
    # Intervals on a line: as many colours as lie above one point.
    starts = np.sort(rng.uniform(0, 10, 80))
    ends = starts + rng.uniform(0, 2, 80)
    edges = [[i, j] for i in range(80) for j in range(i) if starts[i] <= ends[j]]
    deepest = max(int(((starts <= s) & (s <= ends)).sum()) for s in starts)
    assert wp.utils.graph_coloring_assign(wp.array(edges, dtype=int), wp.zeros(80, dtype=int)) == deepest


def test_balancing_evens_out_the_groups():
    edges = random_edges(100, 120, 3)
    a, colors = wp.array(edges, dtype=int), wp.zeros(100, dtype=int)
    count = wp.utils.graph_coloring_assign(a, colors)
    before = np.bincount(colors.numpy())
    ratio = wp.utils.graph_coloring_balance(a, colors, count, 1.1)
    after = np.bincount(colors.numpy())
    check(edges, colors, count)
    assert ratio == after.max() / after.min() and ratio <= before.max() / before.min() and ratio <= 1.1
    assert wp.utils.graph_coloring_balance(a, colors, count, 1.0, max_iterations=0) == ratio


def test_the_ratio_is_infinite_where_a_colour_has_no_nodes():
    edges, colors = wp.array([[0, 1]], dtype=int), wp.array([0, 1, 0, 0], dtype=int)
    assert wp.utils.graph_coloring_balance(edges, colors, 3, 1.0, max_iterations=0) == np.inf
    assert wp.utils.graph_coloring_balance(edges, colors, 2, 1.0, max_iterations=0) == 3.0
    assert wp.utils.graph_coloring_balance(edges, colors, 3, 1.0) == 2.0
    none = wp.empty((0, 2), dtype=int), wp.empty(0, dtype=int)
    assert wp.utils.graph_coloring_balance(*none, 2, 1.0) == np.inf
    assert wp.utils.graph_coloring_balance(*none, 0, 1.0) == np.inf


def test_groups_have_each_node_once():
    colors = wp.array([1, 0, 2, 1, 1], dtype=int)
    groups = wp.utils.graph_coloring_get_groups(colors, 4)
    assert [group.list() for group in groups] == [[1], [0, 3, 4], [2], []] and groups[0].dtype is wp.int32
    host = wp.utils.graph_coloring_get_groups(colors, 4, return_wp_array=False)
    assert isinstance(host, tuple) and [group.tolist() for group in host] == [[1], [0, 3, 4], [2], []]


def test_wrong_edges_of_a_graph_are_named():
    colors = wp.zeros(4, dtype=int)
    assign = wp.utils.graph_coloring_assign
    for edges, message in (
        (wp.zeros(4, dtype=int), r"'edges' has the shape \(4,\), expected \(n, 2\)"),
        (wp.zeros((2, 2)), "'edges' is an array of float32, expected int32"),
        (wp.array([[0, 9]], dtype=int), r"edge 0 joins the nodes \(0, 9\), of nodes 0 to 3"),
    ):
        with pytest.raises(RuntimeError, match=message):
            assign(edges, colors)
    with pytest.raises(TypeError, match="'edges' must be a warp.array"):
        assign(np.zeros((1, 2)), colors)
    with pytest.raises(ValueError, match="algorithm is 'x'"):
        assign(wp.zeros((1, 2), dtype=int), colors, "x")
    with pytest.raises(ValueError, match="colours from 0 to 0, expected 0 to -1"):
        wp.utils.graph_coloring_get_groups(colors, 0)
