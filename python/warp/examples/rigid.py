"""A ball runs into a tower of bricks: rigid bodies with contact and friction.

    python -m warp.examples.rigid

Each step finds which bodies may touch (bounding boxes, swept along an axis) and their points of contact (separating
axes, clipped faces). Then it takes small substeps in which the contacts push bodies apart and hold them by friction.
Contacts that share a body must not be solved at the same time: they are coloured in rounds, in each of which a pair of
bodies takes part whose number is the highest that both have been offered.

Contacts are soft springs, stiff and strongly damped, whose push is accumulated over the substeps of a step (sequential
impulses); a second pass without the springs takes out the speed that they have added.

Units: metres, seconds, kilograms.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _raster, _show

GROUND, BALL, BRICK = 0, 1, 2
MARGIN = 0.02  # contacts are noted this far ahead, and as far as the bodies may come in a step
HERTZ = 60.0  # of the springs, at most a quarter of the substeps' rate
DAMPING = 10.0  # times critical
FASTEST_PUSH = 4.0  # m/s, with which overlaps are resolved
REBOUND = 1.0  # m/s; slower contacts do not bounce


@wp.struct
class Bodies:
    kind: wp.array[int]
    half: wp.array[wp.vec3]  # half the sides of a brick; the radius of a ball, three times
    pose: wp.array[wp.transform]
    velocity: wp.array[wp.vec3]
    spin: wp.array[wp.vec3]
    inverse_mass: wp.array[float]
    inverse_inertia: wp.array[wp.vec3]  # along the body's own axes


@wp.struct
class Contacts:
    """Up to four points for a pair of bodies, each given on both of them."""

    seconds: float  # of a step
    pair: wp.array[wp.vec2i]
    normal: wp.array[wp.vec3]  # from the first body to the second
    count: wp.array[int]
    on_first: wp.array2d[wp.vec3]  # in the frames of the bodies
    on_second: wp.array2d[wp.vec3]
    impulse: wp.array2d[wp.vec3]  # along the normal and two tangents
    approach: wp.array2d[float]  # speed at the start of the step


@wp.struct
class Softness:
    rate: float
    mass: float
    impulse: float


# ---- which bodies may touch ----


@wp.kernel
def bound(bodies: Bodies, seconds: float, lower: wp.array[wp.vec3], upper: wp.array[wp.vec3]):
    i = wp.tid()
    p = wp.transform_get_translation(bodies.pose[i])
    r = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[i]))
    h = bodies.half[i]
    reach = h
    if bodies.kind[i] == BRICK:
        for axis in range(3):
            reach[axis] = wp.abs(r[axis, 0]) * h[0] + wp.abs(r[axis, 1]) * h[1] + wp.abs(r[axis, 2]) * h[2]
    margin = MARGIN + seconds * wp.length(bodies.velocity[i])
    reach += wp.vec3(margin, margin, margin)
    lower[i] = p - reach
    upper[i] = p + reach


@wp.kernel
def sweep(
    order: wp.array[int],
    lower: wp.array[wp.vec3],
    upper: wp.array[wp.vec3],
    inverse_mass: wp.array[float],
    counters: wp.array[int],
    pairs: wp.array[wp.vec2i],
):
    """Pairs whose boxes overlap: `order` has the bodies by their lower x, so that a walk ahead soon ends."""
    at = wp.tid()
    i = order[at]
    other = at + 1
    while other < order.shape[0]:
        j = order[other]
        if lower[j][0] > upper[i][0]:
            break
        apart = lower[j][1] > upper[i][1] or lower[i][1] > upper[j][1]
        apart = apart or lower[j][2] > upper[i][2] or lower[i][2] > upper[j][2]
        if not apart and inverse_mass[i] + inverse_mass[j] > 0.0:
            n = wp.atomic_add(counters, 0, 1)
            if n < pairs.shape[0]:
                pairs[n] = wp.vec2i(wp.min(i, j), wp.max(i, j))
        other += 1


@wp.kernel
def meet_ground(
    lower: wp.array[wp.vec3],
    inverse_mass: wp.array[float],
    counters: wp.array[int],
    pairs: wp.array[wp.vec2i],
):
    i = wp.tid()
    if lower[i][1] < 0.0 and inverse_mass[i] > 0.0:
        n = wp.atomic_add(counters, 0, 1)
        if n < pairs.shape[0]:
            pairs[n] = wp.vec2i(0, i)


# ---- points of contact ----


@wp.func
def to_body(pose: wp.transform, p: wp.vec3) -> wp.vec3:
    return wp.transform_point(wp.transform_inverse(pose), p)


@wp.func
def margin_of(contacts: Contacts, bodies: Bodies, c: int) -> float:
    pair = contacts.pair[c]
    return MARGIN + contacts.seconds * wp.length(bodies.velocity[pair[1]] - bodies.velocity[pair[0]])


@wp.func
def note(contacts: Contacts, bodies: Bodies, c: int, one: wp.vec3, other: wp.vec3, flip: float):
    """One more point of contact c, in the world. If `flip` is 1, `one` is on the first body, else on the second."""
    p = wp.where(flip > 0.0, one, other)
    q = wp.where(flip > 0.0, other, one)
    n = contacts.count[c]
    if n < 4:
        pair = contacts.pair[c]
        contacts.on_first[c, n] = to_body(bodies.pose[pair[0]], p)
        contacts.on_second[c, n] = to_body(bodies.pose[pair[1]], q)
        contacts.impulse[c, n] = wp.vec3(0.0, 0.0, 0.0)
        contacts.count[c] = n + 1


@wp.func
def ground_and_body(contacts: Contacts, bodies: Bodies, c: int, j: int):
    contacts.normal[c] = wp.vec3(0.0, 1.0, 0.0)
    pose = bodies.pose[j]
    h = bodies.half[j]
    if bodies.kind[j] == BALL:
        p = wp.transform_get_translation(pose) - wp.vec3(0.0, h[0], 0.0)
        note(contacts, bodies, c, wp.vec3(p[0], 0.0, p[2]), p, 1.0)
    else:
        # the four corners of the face that looks down most
        down = wp.transform_vector(wp.transform_inverse(pose), wp.vec3(0.0, -1.0, 0.0))
        axis = int(wp.argmax(wp.abs(down)))
        corner = wp.vec3(0.0, 0.0, 0.0)
        corner[axis] = wp.where(down[axis] > 0.0, h[axis], -h[axis])
        u = (axis + 1) % 3
        v = (axis + 2) % 3
        for n in range(4):
            corner[u] = wp.where((n & 1) == 0, h[u], -h[u])
            corner[v] = wp.where((n & 2) == 0, h[v], -h[v])
            p = wp.transform_point(pose, corner)
            if p[1] < margin_of(contacts, bodies, c):
                note(contacts, bodies, c, wp.vec3(p[0], 0.0, p[2]), p, 1.0)


@wp.func
def balls(contacts: Contacts, bodies: Bodies, c: int, i: int, j: int):
    p = wp.transform_get_translation(bodies.pose[i])
    q = wp.transform_get_translation(bodies.pose[j])
    d = q - p
    distance = wp.length(d)
    ri = bodies.half[i][0]
    rj = bodies.half[j][0]
    if distance > 0.0 and distance < ri + rj + margin_of(contacts, bodies, c):
        n = d / distance
        contacts.normal[c] = n
        note(contacts, bodies, c, p + ri * n, q - rj * n, 1.0)


@wp.func
def ball_and_brick(contacts: Contacts, bodies: Bodies, c: int, ball: int, brick: int, flip: float):
    """`flip` is 1 if the ball is the first body of the pair, else -1."""
    pose = bodies.pose[brick]
    h = bodies.half[brick]
    radius = bodies.half[ball][0]
    centre = to_body(pose, wp.transform_get_translation(bodies.pose[ball]))
    on_brick = wp.vec3(
        wp.clamp(centre[0], -h[0], h[0]), wp.clamp(centre[1], -h[1], h[1]), wp.clamp(centre[2], -h[2], h[2])
    )
    d = centre - on_brick
    distance = wp.length(d)
    n = wp.vec3(0.0, 0.0, 0.0)
    if distance > 1.0e-6:
        n = d / distance
    else:  # the centre is inside: out through the nearest face
        depths = h - wp.abs(centre)
        axis = int(wp.argmin(depths))
        n[axis] = wp.where(centre[axis] >= 0.0, 1.0, -1.0)
        on_brick = centre + depths[axis] * n
        distance = -depths[axis]
    if distance < radius + margin_of(contacts, bodies, c):
        outward = wp.transform_vector(pose, n)
        p = wp.transform_get_translation(bodies.pose[ball]) - radius * outward
        q = wp.transform_point(pose, on_brick)
        contacts.normal[c] = -flip * outward
        note(contacts, bodies, c, p, q, flip)


@wp.func
def support(r: wp.mat33, h: wp.vec3, direction: wp.vec3) -> float:
    """How far a brick reaches along a direction, from its middle."""
    return (
        wp.abs(wp.dot(wp.vec3(r[0, 0], r[1, 0], r[2, 0]), direction)) * h[0]
        + wp.abs(wp.dot(wp.vec3(r[0, 1], r[1, 1], r[2, 1]), direction)) * h[1]
        + wp.abs(wp.dot(wp.vec3(r[0, 2], r[1, 2], r[2, 2]), direction)) * h[2]
    )


@wp.func
def column(m: wp.mat33, axis: int) -> wp.vec3:
    return wp.vec3(m[0, axis], m[1, axis], m[2, axis])


@wp.func
def least_overlap(pi: wp.vec3, ri: wp.mat33, hi: wp.vec3, pj: wp.vec3, rj: wp.mat33, hj: wp.vec3):
    """Of the 15 axes that can part two bricks, the one along which they overlap least: its number (0 to 2: face of the
    first, 3 to 5: face of the second, 6 and more: a pair of edges), its direction from first to second, the overlap."""
    d = pj - pi
    best = int(0)
    least = float(1.0e9)
    normal = wp.vec3(0.0, 0.0, 0.0)
    for axis in range(6):
        n = column(rj, axis % 3)
        if axis < 3:
            n = column(ri, axis)
        overlap = support(ri, hi, n) + support(rj, hj, n) - wp.abs(wp.dot(d, n))
        # faces of the second must be better by a little, so that the choice does not flicker
        if overlap < least - wp.where(axis < 3, 0.0, 1.0e-4):
            least = overlap
            best = axis
            normal = wp.where(wp.dot(d, n) < 0.0, -n, n)
    for axis in range(9):
        n = wp.cross(column(ri, axis // 3), column(rj, axis % 3))
        length = wp.length(n)
        if length > 1.0e-3:
            n = n / length
            overlap = support(ri, hi, n) + support(rj, hj, n) - wp.abs(wp.dot(d, n))
            if overlap < 0.95 * least - 1.0e-3 or (overlap < 0.0 and overlap < least):
                least = overlap
                best = 6 + axis
                normal = wp.where(wp.dot(d, n) < 0.0, -n, n)
    return best, normal, least


@wp.func
def clip(from_: float, to: float, half: float):
    """Part of a segment within -half … half along one coordinate: its ends as shares of the segment."""
    first = float(0.0)
    last = float(1.0)
    d = to - from_
    if wp.abs(d) < 1.0e-9:
        if wp.abs(from_) > half:
            last = -1.0
    else:
        a = (-half - from_) / d
        b = (half - from_) / d
        first = wp.max(wp.min(a, b), 0.0)
        last = wp.min(wp.max(a, b), 1.0)
    return first, last


@wp.func
def faces(contacts: Contacts, bodies: Bodies, c: int, owner: int, other: int, axis: int, n: wp.vec3, flip: float):
    """Face `axis` of `owner`, which looks along n, against the face of `other` that looks at it most: of the corners of
    their overlap, the farthest in each of four directions."""
    pose = bodies.pose[owner]
    h = bodies.half[owner]
    r = wp.quat_to_matrix(wp.transform_get_rotation(pose))
    u = (axis + 1) % 3
    v = (axis + 2) % 3
    eu = column(r, u)
    ev = column(r, v)
    middle = wp.transform_get_translation(pose) + h[axis] * n

    # the other face: its middle and half sides, in the plane (eu, ev) and along n
    ro = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[other]))
    ho = bodies.half[other]
    facing = wp.vec3(wp.dot(column(ro, 0), n), wp.dot(column(ro, 1), n), wp.dot(column(ro, 2), n))
    oa = int(wp.argmax(wp.abs(facing)))
    outward = wp.where(facing[oa] > 0.0, -1.0, 1.0) * column(ro, oa)
    m = wp.transform_get_translation(bodies.pose[other]) + ho[oa] * outward - middle
    s = ho[(oa + 1) % 3] * column(ro, (oa + 1) % 3)
    t = ho[(oa + 2) % 3] * column(ro, (oa + 2) % 3)
    mu = wp.dot(m, eu)
    mv = wp.dot(m, ev)
    su = wp.dot(s, eu)
    sv = wp.dot(s, ev)
    tu = wp.dot(t, eu)
    tv = wp.dot(t, ev)
    area = su * tv - sv * tu

    best = wp.vec4(-1.0e9, -1.0e9, -1.0e9, -1.0e9)
    at_u = wp.vec4(0.0, 0.0, 0.0, 0.0)
    at_v = wp.vec4(0.0, 0.0, 0.0, 0.0)
    for candidate in range(12):
        pu = float(0.0)
        pv = float(0.0)
        valid = False
        if candidate < 8:  # sides of the other face, clipped to this one
            side = candidate // 2
            along_s = side % 2 == 0
            sign = wp.where(side < 2, 1.0, -1.0)
            au = mu + sign * wp.where(along_s, tu - su, su - tu)
            av = mv + sign * wp.where(along_s, tv - sv, sv - tv)
            bu = mu + sign * (su + tu)
            bv = mv + sign * (sv + tv)
            first_u, last_u = clip(au, bu, h[u])
            first_v, last_v = clip(av, bv, h[v])
            first = wp.max(first_u, first_v)
            last = wp.min(last_u, last_v)
            valid = first <= last
            share = wp.where(candidate % 2 == 0, first, last)
            pu = au + share * (bu - au)
            pv = av + share * (bv - av)
        else:  # corners of this face inside the other
            pu = wp.where((candidate & 1) == 0, h[u], -h[u])
            pv = wp.where((candidate & 2) == 0, h[v], -h[v])
            if wp.abs(area) > 1.0e-9:
                a = ((pu - mu) * tv - (pv - mv) * tu) / area
                b = (su * (pv - mv) - sv * (pu - mu)) / area
                valid = wp.abs(a) <= 1.0 and wp.abs(b) <= 1.0
        if valid:
            for k in range(4):
                score = wp.where((k & 1) == 0, pu, -pu) + wp.where((k & 2) == 0, pv, -pv)
                if score > best[k] + 1.0e-5:
                    best[k] = score
                    at_u[k] = pu
                    at_v[k] = pv
    # depth on the plane of the other face: n·(x - m) is linear in the plane's coordinates
    slope = wp.dot(outward, n)
    for k in range(4):
        fresh = best[k] > -1.0e8
        for earlier in range(k):
            if wp.abs(at_u[k] - at_u[earlier]) + wp.abs(at_v[k] - at_v[earlier]) < 1.0e-4:
                fresh = False
        if fresh and wp.abs(slope) > 1.0e-3:
            foot = at_u[k] * eu + at_v[k] * ev
            height = wp.dot(m - foot, outward) / slope
            if height < margin_of(contacts, bodies, c):
                p = middle + foot
                q = p + height * n
                note(contacts, bodies, c, p, q, flip)


@wp.func
def edges(contacts: Contacts, bodies: Bodies, c: int, i: int, j: int, which: int, n: wp.vec3):
    """The nearest points of two edges."""
    ri = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[i]))
    rj = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[j]))
    ai = which // 3
    aj = which % 3
    p = wp.transform_get_translation(bodies.pose[i])
    q = wp.transform_get_translation(bodies.pose[j])
    for axis in range(3):
        if axis != ai:
            e = column(ri, axis)
            p += wp.where(wp.dot(e, n) > 0.0, 1.0, -1.0) * bodies.half[i][axis] * e
        if axis != aj:
            e = column(rj, axis)
            q -= wp.where(wp.dot(e, n) > 0.0, 1.0, -1.0) * bodies.half[j][axis] * e
    u = column(ri, ai)
    v = column(rj, aj)
    d = q - p
    w = wp.cross(u, v)  # 1 - dot(u, v)² would round to 0 for nearly parallel edges
    hi = bodies.half[i][ai]
    hj = bodies.half[j][aj]
    along_u = wp.clamp(wp.dot(wp.cross(d, v), w) / wp.length_sq(w), -hi, hi)
    along_v = wp.clamp(wp.dot(wp.cross(d, u), w) / wp.length_sq(w), -hj, hj)
    note(contacts, bodies, c, p + along_u * u, q + along_v * v, 1.0)


@wp.func
def bricks(contacts: Contacts, bodies: Bodies, c: int, i: int, j: int):
    pi = wp.transform_get_translation(bodies.pose[i])
    pj = wp.transform_get_translation(bodies.pose[j])
    ri = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[i]))
    rj = wp.quat_to_matrix(wp.transform_get_rotation(bodies.pose[j]))
    which, n, overlap = least_overlap(pi, ri, bodies.half[i], pj, rj, bodies.half[j])
    if overlap > -margin_of(contacts, bodies, c):
        contacts.normal[c] = n
        if which < 6:
            first = which < 3
            flip = wp.where(first, 1.0, -1.0)
            faces(contacts, bodies, c, wp.where(first, i, j), wp.where(first, j, i), which % 3, flip * n, flip)
        else:
            edges(contacts, bodies, c, i, j, which - 6, n)


@wp.kernel
def collide(bodies: Bodies, contacts: Contacts):
    c = wp.tid()
    contacts.count[c] = 0
    i = contacts.pair[c][0]
    j = contacts.pair[c][1]
    if bodies.kind[i] == GROUND:
        ground_and_body(contacts, bodies, c, j)
    elif bodies.kind[i] == BALL and bodies.kind[j] == BALL:
        balls(contacts, bodies, c, i, j)
    elif bodies.kind[i] == BALL or bodies.kind[j] == BALL:
        first = bodies.kind[i] == BALL
        ball_and_brick(contacts, bodies, c, wp.where(first, i, j), wp.where(first, j, i), wp.where(first, 1.0, -1.0))
    else:
        bricks(contacts, bodies, c, i, j)


@wp.kernel
def list_contacts(contacts: Contacts, first: wp.array[int], following: wp.array[int]):
    """Each contact joins the list of its second body; -1 ends a list."""
    c = wp.tid()
    following[c] = wp.atomic_exch(first, contacts.pair[c][1], c)


@wp.kernel
def remember(contacts: Contacts, earlier: Contacts, first: wp.array[int], following: wp.array[int]):
    """Points that the pair had in the step before, at the same place, keep their impulses: a pile need not be
    discovered anew in each step."""
    c = wp.tid()
    pair = contacts.pair[c]
    old = first[pair[1]]
    while old >= 0:
        if earlier.pair[old][0] == pair[0] and wp.dot(earlier.normal[old], contacts.normal[c]) > 0.99:
            for k in range(contacts.count[c]):
                nearest = MARGIN
                for m in range(earlier.count[old]):
                    distance = wp.length(contacts.on_second[c, k] - earlier.on_second[old, m])
                    if distance < nearest:
                        nearest = distance
                        contacts.impulse[c, k] = earlier.impulse[old, m]
        old = following[old]


# ---- colouring ----


@wp.func
def rank(c: int) -> int:
    """A number above 0 that differs from contact to contact and looks random, so that rounds are few."""
    return wp.int32(wp.uint32(c) * wp.uint32(2654435761) >> wp.uint32(1)) | 1


@wp.kernel
def bid(contacts: Contacts, inverse_mass: wp.array[float], waiting: wp.array[int], bids: wp.array[wp.uint64]):
    """A contact that waits offers its number to both bodies, which keep the highest."""
    c = wp.tid()
    if waiting[c] == 1 and contacts.count[c] > 0:
        offer = (wp.uint64(rank(c)) << wp.uint64(32)) | wp.uint64(c)
        for side in range(2):
            body = contacts.pair[c][side]
            if inverse_mass[body] > 0.0:
                wp.atomic_max(bids, body, offer)


@wp.kernel
def choose(
    contacts: Contacts,
    inverse_mass: wp.array[float],
    bids: wp.array[wp.uint64],
    waiting: wp.array[int],
    counters: wp.array[int],
    order: wp.array[int],
):
    """A contact that has both its bodies belongs to this round's colour."""
    c = wp.tid()
    if waiting[c] == 1 and contacts.count[c] > 0:
        offer = (wp.uint64(rank(c)) << wp.uint64(32)) | wp.uint64(c)
        first = contacts.pair[c][0]
        second = contacts.pair[c][1]
        free = inverse_mass[first] == 0.0 or bids[first] == offer
        free = free and (inverse_mass[second] == 0.0 or bids[second] == offer)
        if free:
            waiting[c] = 0
            order[wp.atomic_add(counters, 1, 1)] = c


# ---- moving ----


@wp.func
def turn_by_inertia(q: wp.quat, inverse_inertia: wp.vec3, v: wp.vec3) -> wp.vec3:
    """The inverse inertia in the world, times v."""
    return wp.quat_rotate(q, wp.cw_mul(inverse_inertia, wp.quat_rotate_inv(q, v)))


@wp.kernel
def accelerate(bodies: Bodies, gravity: wp.vec3, dt: float):
    i = wp.tid()
    if bodies.inverse_mass[i] > 0.0:
        bodies.velocity[i] += dt * gravity


@wp.kernel
def move(bodies: Bodies, dt: float):
    """Positions from velocities. Angular momentum stays while the body turns, so that the spin changes with it."""
    i = wp.tid()
    if bodies.inverse_mass[i] > 0.0:
        pose = bodies.pose[i]
        p = wp.transform_get_translation(pose) + dt * bodies.velocity[i]
        q = wp.transform_get_rotation(pose)
        spin = bodies.spin[i]
        inertia = wp.cw_div(wp.vec3(1.0, 1.0, 1.0), bodies.inverse_inertia[i])
        momentum = turn_by_inertia(q, inertia, spin)
        # the spin in the middle of the step turns the body
        half_way = wp.normalize(q + wp.quat(0.25 * dt * spin, 0.0) * q)
        spin = turn_by_inertia(half_way, bodies.inverse_inertia[i], momentum)
        angle = wp.length(spin) * dt
        if angle > 0.0:
            q = wp.normalize(wp.quat_from_axis_angle(wp.normalize(spin), angle) * q)
        bodies.pose[i] = wp.transform(p, q)
        bodies.spin[i] = turn_by_inertia(q, bodies.inverse_inertia[i], momentum)


@wp.func
def tangent(n: wp.vec3) -> wp.vec3:
    """Some direction across n."""
    aside = wp.where(wp.abs(n[0]) < 0.6, wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))
    return wp.normalize(wp.cross(n, aside))


@wp.func
def yielding(bodies: Bodies, body: int, q: wp.quat, arm: wp.vec3, direction: wp.vec3) -> float:
    """Speed along a direction that a unit impulse along it gives to a point of a body."""
    turn = wp.cross(arm, direction)
    return bodies.inverse_mass[body] + wp.dot(turn, turn_by_inertia(q, bodies.inverse_inertia[body], turn))


@wp.kernel
def note_approach(bodies: Bodies, contacts: Contacts):
    """Speeds along the normals before the contacts act, for the rebound."""
    c = wp.tid()
    i = contacts.pair[c][0]
    j = contacts.pair[c][1]
    for k in range(contacts.count[c]):
        a = wp.transform_vector(bodies.pose[i], contacts.on_first[c, k])
        b = wp.transform_vector(bodies.pose[j], contacts.on_second[c, k])
        va = bodies.velocity[i] + wp.cross(bodies.spin[i], a)
        vb = bodies.velocity[j] + wp.cross(bodies.spin[j], b)
        contacts.approach[c, k] = wp.dot(vb - va, contacts.normal[c])


@wp.kernel
def push_again(bodies: Bodies, contacts: Contacts, order: wp.array[int]):
    """The impulses that held the bodies in the last substep, for the contacts of one colour."""
    c = order[wp.tid()]
    i = contacts.pair[c][0]
    j = contacts.pair[c][1]
    n = contacts.normal[c]
    t1 = tangent(n)
    t2 = wp.cross(n, t1)
    qi = wp.transform_get_rotation(bodies.pose[i])
    qj = wp.transform_get_rotation(bodies.pose[j])
    whole = wp.vec3(0.0, 0.0, 0.0)
    turn_i = wp.vec3(0.0, 0.0, 0.0)
    turn_j = wp.vec3(0.0, 0.0, 0.0)
    for k in range(contacts.count[c]):
        total = contacts.impulse[c, k]
        impulse = total[0] * n + total[1] * t1 + total[2] * t2
        whole += impulse
        turn_i += wp.cross(wp.quat_rotate(qi, contacts.on_first[c, k]), impulse)
        turn_j += wp.cross(wp.quat_rotate(qj, contacts.on_second[c, k]), impulse)
    if bodies.inverse_mass[i] > 0.0:
        bodies.velocity[i] -= bodies.inverse_mass[i] * whole
        bodies.spin[i] -= turn_by_inertia(qi, bodies.inverse_inertia[i], turn_i)
    if bodies.inverse_mass[j] > 0.0:
        bodies.velocity[j] += bodies.inverse_mass[j] * whole
        bodies.spin[j] += turn_by_inertia(qj, bodies.inverse_inertia[j], turn_j)


@wp.kernel
def solve(
    bodies: Bodies,
    contacts: Contacts,
    order: wp.array[int],
    soft: Softness,
    use_springs: int,
    rebound: float,
    friction: float,
    dt: float,
):
    """One pass over the contacts of one colour. With `rebound` above 0 the contacts that have met give back that share
    of their speed of approach, and nothing else happens."""
    c = order[wp.tid()]
    i = contacts.pair[c][0]
    j = contacts.pair[c][1]
    n = contacts.normal[c]
    t1 = tangent(n)
    t2 = wp.cross(n, t1)
    pose_i = bodies.pose[i]
    pose_j = bodies.pose[j]
    qi = wp.transform_get_rotation(pose_i)
    qj = wp.transform_get_rotation(pose_j)
    vi = bodies.velocity[i]
    vj = bodies.velocity[j]
    wi = bodies.spin[i]
    wj = bodies.spin[j]
    apart = wp.transform_get_translation(pose_j) - wp.transform_get_translation(pose_i)
    for k in range(contacts.count[c]):
        a = wp.quat_rotate(qi, contacts.on_first[c, k])
        b = wp.quat_rotate(qj, contacts.on_second[c, k])
        total = contacts.impulse[c, k]
        gap = wp.dot(apart + b - a, n)

        # along the normal
        slip = (vj + wp.cross(wj, b)) - (vi + wp.cross(wi, a))
        effective = 1.0 / (yielding(bodies, i, qi, a, n) + yielding(bodies, j, qj, b, n))
        push = float(0.0)
        if rebound > 0.0:
            if contacts.approach[c, k] < -REBOUND and total[0] > 0.0:
                push = -effective * (wp.dot(slip, n) + rebound * contacts.approach[c, k])
        elif gap > 0.0:  # stop bodies that would meet within the step
            push = -effective * (wp.dot(slip, n) + gap / dt)
        elif use_springs == 1:
            speed = wp.max(soft.rate * gap, -FASTEST_PUSH)
            push = -effective * soft.mass * (wp.dot(slip, n) + speed) - soft.impulse * total[0]
        else:
            push = -effective * wp.dot(slip, n)
        pushed = wp.max(total[0] + push, 0.0)
        impulse = (pushed - total[0]) * n
        total[0] = pushed
        vi -= bodies.inverse_mass[i] * impulse
        vj += bodies.inverse_mass[j] * impulse
        wi -= turn_by_inertia(qi, bodies.inverse_inertia[i], wp.cross(a, impulse))
        wj += turn_by_inertia(qj, bodies.inverse_inertia[j], wp.cross(b, impulse))

        # across it: friction, within its cone
        if rebound <= 0.0:
            slip = (vj + wp.cross(wj, b)) - (vi + wp.cross(wi, a))
            f1 = total[1] - wp.dot(slip, t1) / (yielding(bodies, i, qi, a, t1) + yielding(bodies, j, qj, b, t1))
            f2 = total[2] - wp.dot(slip, t2) / (yielding(bodies, i, qi, a, t2) + yielding(bodies, j, qj, b, t2))
            size = wp.sqrt(f1 * f1 + f2 * f2)
            most = friction * total[0]
            if size > most:
                f1 *= most / size
                f2 *= most / size
            impulse = (f1 - total[1]) * t1 + (f2 - total[2]) * t2
            total[1] = f1
            total[2] = f2
            vi -= bodies.inverse_mass[i] * impulse
            vj += bodies.inverse_mass[j] * impulse
            wi -= turn_by_inertia(qi, bodies.inverse_inertia[i], wp.cross(a, impulse))
            wj += turn_by_inertia(qj, bodies.inverse_inertia[j], wp.cross(b, impulse))
        contacts.impulse[c, k] = total
    if bodies.inverse_mass[i] > 0.0:
        bodies.velocity[i] = vi
        bodies.spin[i] = wi
    if bodies.inverse_mass[j] > 0.0:
        bodies.velocity[j] = vj
        bodies.spin[j] = wj


# ---- looking ----


@wp.kernel
def measure(bodies: Bodies, gravity: wp.vec3, energy: wp.array[wp.float64], momentum: wp.array[wp.vec3d]):
    """Kinetic and potential energy; momentum and angular momentum."""
    i = wp.tid()
    if bodies.inverse_mass[i] > 0.0:
        m = 1.0 / bodies.inverse_mass[i]
        p = wp.transform_get_translation(bodies.pose[i])
        q = wp.transform_get_rotation(bodies.pose[i])
        inertia = wp.cw_div(wp.vec3(1.0, 1.0, 1.0), bodies.inverse_inertia[i])
        turning = turn_by_inertia(q, inertia, bodies.spin[i])
        v = bodies.velocity[i]
        wp.atomic_add(energy, 0, wp.float64(0.5 * (m * wp.dot(v, v) + wp.dot(bodies.spin[i], turning))))
        wp.atomic_add(energy, 1, wp.float64(-m * wp.dot(gravity, p)))
        turning += m * wp.cross(p, v)
        wp.atomic_add(momentum, 0, wp.vec3d(wp.float64(m * v[0]), wp.float64(m * v[1]), wp.float64(m * v[2])))
        wp.atomic_add(momentum, 1, wp.vec3d(wp.float64(turning[0]), wp.float64(turning[1]), wp.float64(turning[2])))


@wp.kernel
def deepest(bodies: Bodies, contacts: Contacts, depth: wp.array[float]):
    """Greatest overlap of the contacts as they are now."""
    c = wp.tid()
    i = contacts.pair[c][0]
    j = contacts.pair[c][1]
    for k in range(contacts.count[c]):
        a = wp.transform_point(bodies.pose[i], contacts.on_first[c, k])
        b = wp.transform_point(bodies.pose[j], contacts.on_second[c, k])
        wp.atomic_max(depth, 0, wp.dot(a - b, contacts.normal[c]))


@wp.kernel
def place(
    bodies: Bodies,
    owner: wp.array[int],
    points: wp.array[wp.vec3],
    normals: wp.array[wp.vec3],
    placed: wp.array[wp.vec3],
    turned: wp.array[wp.vec3],
):
    """Points and normals of the bodies' meshes in the world."""
    p = wp.tid()
    pose = bodies.pose[owner[p]]
    placed[p] = wp.transform_point(pose, points[p])
    turned[p] = wp.transform_vector(pose, normals[p])


def brick_mesh(half, bevel: float = 0.12):
    """Points, normals, triangles of a brick with rounded edges: a sphere's points, moved to the corners."""
    points, normals, triangles = ball_mesh(12)
    radius = bevel * min(half)
    at = np.sign(points + 1e-9) * (np.asarray(half) - radius) + radius * points
    return at, normals, triangles


def ball_mesh(rings: int):
    """A sphere of radius 1; its points avoid the planes of the axes, so that it can be cut into eight corners."""
    polar = np.pi * (np.arange(rings) + 0.5) / rings
    around = 2.0 * np.pi * (np.arange(2 * rings) + 0.5) / (2 * rings)
    p, a = np.meshgrid(polar, around, indexing="ij")
    points = np.stack([np.sin(p) * np.cos(a), np.cos(p), np.sin(p) * np.sin(a)], -1).reshape(-1, 3)
    points = np.concatenate([points, [[0, 1, 0], [0, -1, 0]]])
    i, j = np.meshgrid(np.arange(rings - 1), np.arange(2 * rings), indexing="ij")
    a, b = (i * 2 * rings + j).ravel(), (i * 2 * rings + (j + 1) % (2 * rings)).ravel()
    c, d = a + 2 * rings, b + 2 * rings
    around = np.arange(2 * rings)
    last = 2 * rings * (rings - 1)
    top = np.stack([np.full_like(around, len(points) - 2), (around + 1) % (2 * rings), around], 1)
    foot = np.stack([np.full_like(around, len(points) - 1), last + around, last + (around + 1) % (2 * rings)], 1)
    return points, points.copy(), np.concatenate([np.stack([a, b, c], 1), np.stack([b, d, c], 1), top, foot])


class Scene:
    """Bodies given as (kind, half sides or radius, density, position, rotation); the ground is added as body 0."""

    def __init__(self, bodies, gravity=(0.0, -9.81, 0.0), friction=0.5, rebound=0.0, ground=True, substeps=8):
        kind, half, mass, inertia, pose = [GROUND], [(0.0, 0.0, 0.0)], [np.inf], [(np.inf,) * 3], [(0,) * 6 + (1,)]
        for shape, size, density, position, rotation in bodies:
            h = np.broadcast_to(np.asarray(size, dtype=float), 3)
            if shape == BALL:
                m = density * 4.0 / 3.0 * np.pi * h[0] ** 3
                around = np.full(3, 0.4 * m * h[0] ** 2)
            else:
                m = density * 8.0 * h.prod()
                around = m / 3.0 * ((h**2).sum() - h**2)
            kind.append(shape)
            half.append(h)
            mass.append(m)
            inertia.append(tuple(around))
            pose.append((*position, *rotation))
        self.count, self.gravity, self.ground = len(kind), wp.vec3(*gravity), ground
        self.friction, self.rebound, self.substeps = friction, rebound, substeps
        self.bodies = Bodies()
        self.bodies.kind, self.bodies.half = wp.array(kind, dtype=int), wp.array(np.array(half), dtype=wp.vec3)
        self.bodies.pose = wp.array(np.array(pose, dtype=np.float32), dtype=wp.transform)
        self.bodies.velocity = wp.zeros(self.count, dtype=wp.vec3)
        self.bodies.spin = wp.zeros(self.count, dtype=wp.vec3)
        self.bodies.inverse_mass = wp.array(1.0 / np.array(mass), dtype=float)
        self.bodies.inverse_inertia = wp.array(1.0 / np.array(inertia), dtype=wp.vec3)
        self.lower, self.upper = wp.empty(self.count, dtype=wp.vec3), wp.empty(self.count, dtype=wp.vec3)
        self.bids, self.first = wp.empty(self.count, dtype=wp.uint64), wp.empty(self.count, dtype=int)
        self.room_for(8 * self.count)
        self.colours = []

    def room_for(self, count: int) -> None:
        """Makes room for that many contacts, and forgets earlier ones."""

        def room() -> Contacts:
            contacts = Contacts()
            contacts.pair = wp.empty(count, dtype=wp.vec2i)
            contacts.normal = wp.zeros(count, dtype=wp.vec3)
            contacts.count = wp.zeros(count, dtype=int)
            contacts.on_first = wp.zeros((count, 4), dtype=wp.vec3)
            contacts.on_second = wp.zeros((count, 4), dtype=wp.vec3)
            contacts.impulse = wp.zeros((count, 4), dtype=wp.vec3)
            contacts.approach = wp.zeros((count, 4), dtype=float)
            return contacts

        self.contacts, self.earlier = room(), room()
        self.waiting, self.order, self.following = (wp.empty(count, dtype=int) for _ in range(3))
        self.found = 0

    def look_for_contacts(self, seconds: float = 0.0) -> None:
        """Contacts of the bodies as they are, and those that they may have within ``seconds``."""
        self.contacts, self.earlier, before = self.earlier, self.contacts, self.found
        moving = [self.lower, self.upper, self.bodies.inverse_mass]
        wp.launch(bound, dim=self.count, inputs=[self.bodies, seconds], outputs=[self.lower, self.upper])
        along = np.argsort(self.lower.numpy()[1:, 0], kind="stable") + 1
        along = wp.array(along.astype(np.int32), dtype=int)
        while True:
            counters = wp.zeros(2, dtype=int)
            wp.launch(sweep, dim=self.count - 1, inputs=[along, *moving, counters], outputs=[self.contacts.pair])
            if self.ground:
                inputs = [self.lower, self.bodies.inverse_mass, counters]
                wp.launch(meet_ground, dim=self.count, inputs=inputs, outputs=[self.contacts.pair])
            self.found = int(counters.numpy()[0])
            if self.found <= len(self.order):
                break
            self.room_for(2 * self.found)
            before = 0
        self.contacts.seconds = seconds
        wp.launch(collide, dim=self.found, inputs=[self.bodies, self.contacts])
        self.first.fill_(-1)
        wp.launch(list_contacts, dim=before, inputs=[self.earlier, self.first], outputs=[self.following])
        inputs = [self.contacts, self.earlier, self.first, self.following]
        wp.launch(remember, dim=self.found, inputs=inputs)
        self.colour(counters)

    def colour(self, counters: wp.array) -> None:
        """Fills ``order`` with the contacts that have points, colour after colour."""
        self.colours, done = [], 0
        self.waiting.fill_(1)
        masses = self.bodies.inverse_mass
        while True:
            self.bids.zero_()
            wp.launch(bid, dim=self.found, inputs=[self.contacts, masses, self.waiting], outputs=[self.bids])
            inputs = [self.contacts, masses, self.bids, self.waiting, counters]
            wp.launch(choose, dim=self.found, inputs=inputs, outputs=[self.order])
            last = int(counters.numpy()[1])
            if last == done:
                return
            self.colours.append(self.order[done:last])
            done = last

    def step(self, seconds: float = 1.0 / 120.0) -> None:
        self.look_for_contacts(seconds)
        dt = seconds / self.substeps
        rate = 2.0 * np.pi * min(HERTZ, 0.25 / dt)
        a = 2.0 * DAMPING + dt * rate
        soft = Softness()
        soft.rate, soft.impulse = rate / a, 1.0 / (1.0 + dt * rate * a)
        soft.mass = dt * rate * a * soft.impulse
        wp.launch(note_approach, dim=self.found, inputs=[self.bodies, self.contacts])
        for _ in range(self.substeps):
            wp.launch(accelerate, dim=self.count, inputs=[self.bodies, self.gravity, dt])
            for order in self.colours:
                wp.launch(push_again, dim=len(order), inputs=[self.bodies, self.contacts, order])
            self.solve(soft, 1, 0.0, dt)
            wp.launch(move, dim=self.count, inputs=[self.bodies, dt])
            self.solve(soft, 0, 0.0, dt)
        if self.rebound > 0.0:
            self.solve(soft, 0, self.rebound, dt)

    def solve(self, soft: Softness, use_springs: int, rebound: float, dt: float) -> None:
        for order in self.colours:
            inputs = [self.bodies, self.contacts, order, soft, use_springs, rebound, self.friction, dt]
            wp.launch(solve, dim=len(order), inputs=inputs)

    def measure(self) -> dict[str, float | np.ndarray]:
        energy, momentum = wp.zeros(2, dtype=wp.float64), wp.zeros(2, dtype=wp.vec3d)
        depth = wp.zeros(1, dtype=float)
        wp.launch(measure, dim=self.count, inputs=[self.bodies, self.gravity], outputs=[energy, momentum])
        wp.launch(deepest, dim=self.found, inputs=[self.bodies, self.contacts], outputs=[depth])
        return {
            "kinetic": float(energy.numpy()[0]),
            "potential": float(energy.numpy()[1]),
            "momentum": momentum.numpy()[0],
            "angular momentum": momentum.numpy()[1],
            "depth": float(depth.numpy()[0]),
        }


def tower(rings: int, around: int, seed: int = 3):
    """Bricks in rings, each laid over the gaps of the one below, and a ball on its way to them."""
    rng = np.random.default_rng(seed)
    radius, half = 1.3, np.array([0.13, 0.1, 0.9 * np.pi * 1.3 / around])
    bodies, colours = [], []
    for ring in range(rings):
        for n in range(around):
            angle = 2.0 * np.pi * (n + 0.5 * (ring % 2)) / around
            position = (radius * np.cos(angle), half[1] * (2 * ring + 1), radius * np.sin(angle))
            bodies.append((BRICK, half, 800.0, position, (0.0, np.sin(-0.5 * angle), 0.0, np.cos(-0.5 * angle))))
            warm = np.array([0.62, 0.24, 0.14]) if ring % 4 else np.array([0.75, 0.66, 0.50])
            colours.append(warm * rng.uniform(0.8, 1.2))
    bodies.append((BALL, 0.45, 2500.0, (4.5, 1.3, 0.35), (0.0, 0.0, 0.0, 1.0)))
    colours.append(np.array([0.10, 0.16, 0.24]))
    return bodies, np.array(colours)


class Tower(Scene):
    def __init__(self, rings: int = 14, around: int = 20):
        bodies, colours = tower(rings, around)
        super().__init__(bodies)
        self.bodies.velocity[-1] = (-9.0, 1.5, 0.0)
        meshes = [ball_mesh(40) if b[0] == BALL else brick_mesh(b[1]) for b in bodies]
        meshes[-1] = (0.45 * meshes[-1][0], *meshes[-1][1:])
        sizes = [len(m[0]) for m in meshes]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = wp.array(np.repeat(np.arange(1, len(bodies) + 1), sizes), dtype=int)
        self.points = wp.array(np.concatenate([m[0] for m in meshes]), dtype=wp.vec3)
        self.normals = wp.array(np.concatenate([m[1] for m in meshes]), dtype=wp.vec3)
        triangles = np.concatenate([m[2] + start for m, start in zip(meshes, starts)])
        self.triangles = wp.array(triangles, dtype=int)
        self.colours_of_points = wp.array(np.repeat(colours, sizes, axis=0), dtype=wp.vec3)

    def picture(self, pixels: int) -> np.ndarray:
        placed, turned = wp.empty_like(self.points), wp.empty_like(self.points)
        inputs = [self.bodies, self.owner, self.points, self.normals]
        wp.launch(place, dim=len(self.points), inputs=inputs, outputs=[placed, turned])
        view = _raster.camera((3.2, 3.0, 6.2), (0.1, 0.95, 0.0), pixels, pixels, field_of_view=42.0)
        look = _raster.daylight(sun=(0.6, 1.0, 0.5), ground_level=0.0, gloss=0.12)
        colours = self.colours_of_points
        return _raster.draw(view, look, placed, self.triangles, colours, normals=turned, reach=5.5)


def main() -> None:
    options = _show.arguments(__doc__, rings=14, around=20, frames=110, substeps=8, pixels=400)
    scene = Tower(options.rings, options.around)
    scene.substeps = options.substeps
    frames, stepping, points, worst = [], 0.0, 0, 0.0
    for frame in _show.progress(options.frames, "rigid"):
        start = time.perf_counter()
        scene.step()
        scene.step()
        stepping += time.perf_counter() - start
        if frame % 2 == 0:
            frames.append(_show.to_bytes(scene.picture(options.pixels)))
        points = max(points, int(scene.contacts.count.numpy()[: scene.found].sum()))
        worst = max(worst, float(scene.measure()["depth"]))
    print(
        f"{scene.count - 1} bodies, up to {points} points of contact in {len(scene.colours)} colours, "
        f"{2 * options.frames} steps of {options.substeps} substeps in {stepping:.1f} s; "
        f"deepest overlap {1e3 * worst:.1f} mm"
    )
    _show.save_png(options.out / "rigid.png", scene.picture(2 * options.pixels))
    _show.save_gif(options.out / "rigid.gif", frames, frame_ms=40)


if __name__ == "__main__":
    main()
