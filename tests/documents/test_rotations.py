"""Our own counterparts of the seeds' samples about quaternions, transforms and the functions of geometry
(P-71 to P-76, S-QUA, S-XFM, S-BLT). The samples themselves run in test_documents.py."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

PRECISIONS = {"float16": "h", "float32": "f", "float64": "d"}


@wp.kernel
def rotate_about_x(angle: float, out: wp.array(dtype=wp.vec3)):
    q = wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), angle)
    out[0] = wp.quat_rotate(q, wp.vec3(0.0, 1.0, 0.0))


@pytest.mark.seed("P-71")
@pytest.mark.seed("S-QUA-002")
@pytest.mark.seed("S-QUA-004")
@pytest.mark.seed("S-QUA-005")
def test_degrees_gives_degrees_and_rotations_take_radians():
    out = wp.zeros(1, dtype=wp.vec3)
    for given in (np.degrees(30.0), np.radians(30.0), -2.0):
        angle = float(np.float32(given))  # as the kernel gets it
        wp.launch(rotate_about_x, dim=1, inputs=[angle, out])
        np.testing.assert_allclose(out.numpy()[0], [0.0, np.cos(angle), np.sin(angle)], atol=5e-7)
    degrees = wp.zeros(1)
    wp.launch(in_degrees, dim=1, inputs=[degrees])
    np.testing.assert_allclose(degrees.numpy()[0], 1718.8734, rtol=1e-6)


@wp.kernel
def in_degrees(out: wp.array(dtype=float)):
    out[0] = wp.degrees(30.0)


@pytest.mark.seed("P-72")
@pytest.mark.seed("P-75")
@pytest.mark.seed("S-QUA-001")
@pytest.mark.seed("S-QUA-006")
@pytest.mark.seed("S-XFM-001")
@pytest.mark.seed("S-XFM-005")
@pytest.mark.parametrize("scalar", PRECISIONS)
def test_named_and_made_types_are_one(scalar):
    suffix = PRECISIONS[scalar]
    dtype = getattr(wp, scalar)
    assert wp.types.quaternion(dtype=dtype) is getattr(wp, f"quat{suffix}")
    assert wp.types.transformation(dtype=dtype) is getattr(wp, f"transform{suffix}")
    assert wp.quat is wp.quatf and wp.transform is wp.transformf
    q = wp.zeros(3, dtype=wp.types.quaternion(dtype=dtype)).numpy()
    t = wp.zeros(3, dtype=wp.types.transformation(dtype=dtype)).numpy()
    assert q.shape == (3, 4) and t.shape == (3, 7) and q.dtype == t.dtype == scalar


@wp.kernel
def quaternions(d: wp.array(dtype=wp.quatd), f: wp.array(dtype=wp.quatf), h: wp.array(dtype=wp.quath)):
    d[0] = wp.quat_identity(dtype=wp.float64)
    f[0] = wp.quat_identity()
    h[0] = wp.quaternion(wp.float16(0.0), wp.float16(0.0), wp.float16(0.0), wp.float16(1.0))
    h[1] = wp.quaternion(wp.vector(wp.float16(1.0), wp.float16(2.0), wp.float16(3.0)), wp.float16(4.0))
    f[1] = wp.quat(1.0, 2.0, 3.0, 4.0)
    q = f[1]
    f[2] = wp.quat(q.w, q.x, q[1], q[2])


@pytest.mark.seed("P-73")
@pytest.mark.seed("S-QUA-001")
@pytest.mark.seed("S-QUA-007")
@pytest.mark.seed("S-QUA-008")
def test_identity_and_anonymous_quaternions():
    d, f, h = wp.zeros(1, dtype=wp.quatd), wp.zeros(3, dtype=wp.quatf), wp.zeros(2, dtype=wp.quath)
    wp.launch(quaternions, dim=1, inputs=[d, f, h])
    for identity in (d.numpy()[0], f.numpy()[0], h.numpy()[0]):
        assert identity.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert h.numpy()[1].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert f.numpy()[2].tolist() == [4.0, 1.0, 2.0, 3.0]  # the real part stands last


@pytest.mark.seed("S-QUA-002")
@pytest.mark.parametrize("scalar, tolerance", [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)])
def test_the_angle_is_in_radians_about_any_axis(scalar, tolerance):
    dtype = getattr(wp, scalar)
    vector, quaternion = wp.types.vector(3, dtype), wp.types.quaternion(dtype)

    @wp.kernel(module="unique")
    def k(axis: wp.array(dtype=vector), angle: wp.array(dtype=dtype), q: wp.array(dtype=quaternion)):
        i = wp.tid()
        q[i] = wp.quat_from_axis_angle(axis[i], angle[i])

    rng = np.random.default_rng(0)
    axis = rng.standard_normal((40, 3))
    axis = (axis / np.linalg.norm(axis, axis=1, keepdims=True)).astype(scalar)
    angle = rng.uniform(-4.0, 4.0, 40).astype(scalar)
    q = wp.zeros(40, dtype=quaternion)
    wp.launch(k, dim=40, inputs=[axis, angle, q])
    half = angle.astype(np.float64) / 2.0
    expected = np.concatenate([axis.astype(np.float64) * np.sin(half)[:, None], np.cos(half)[:, None]], axis=1)
    np.testing.assert_allclose(q.numpy(), expected, atol=tolerance)


@wp.kernel
def transforms(p: wp.vec3, angle: float, out: wp.array(dtype=wp.vec3), back: wp.array(dtype=wp.transform)):
    t = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_from_axis_angle(0.0, 1.0, 0.0, angle))
    out[0] = wp.transform_point(t, p)
    out[1] = wp.transform_vector(t, p)
    back[0] = t


@pytest.mark.seed("P-74")
@pytest.mark.seed("S-QUA-003")
@pytest.mark.seed("S-XFM-003")
@pytest.mark.seed("S-XFM-004")
@pytest.mark.parametrize("angle", [0.0, 0.5, float(np.degrees(30.0))])
def test_a_transform_from_a_rotation_of_four_scalars(angle):
    out, back = wp.zeros(2, dtype=wp.vec3), wp.zeros(1, dtype=wp.transform)
    wp.launch(transforms, dim=1, inputs=[wp.vec3(10.0, 0.5, 1.0), angle, out, back])
    point, vector = out.numpy()
    given = float(np.float32(angle))  # as the kernel gets it
    expected = Rotation.from_rotvec([0, given, 0]).apply([10.0, 0.5, 1.0])
    np.testing.assert_allclose(vector, expected, atol=5e-6)
    np.testing.assert_allclose(point, expected + [1, 2, 3], atol=5e-6)
    half = given / 2.0
    np.testing.assert_allclose(back.numpy()[0], [1, 2, 3, 0, np.sin(half), 0, np.cos(half)], atol=5e-7)


@wp.kernel
def identities(d: wp.array(dtype=wp.transformd), f: wp.array(dtype=wp.transformf), h: wp.array(dtype=wp.transformh)):
    d[0] = wp.transform_identity(dtype=wp.float64)
    f[0] = wp.transform_identity()
    h[0] = wp.transform_identity(wp.float16)


@pytest.mark.seed("P-76")
@pytest.mark.seed("S-XFM-006")
def test_identity_transforms():
    out = [wp.zeros(1, dtype=t) for t in (wp.transformd, wp.transformf, wp.transformh)]
    wp.launch(identities, dim=1, inputs=out)
    for a in out:
        assert a.numpy()[0].tolist() == [0.0] * 6 + [1.0]


@wp.kernel
def old_name(t: wp.spatial_transform, out: wp.array(dtype=wp.spatial_transform)):
    out[0] = wp.spatial_transform(wp.vec3(1.0, 2.0, 3.0), wp.transform_get_rotation(t))


@wp.struct
class Frame:
    pose: wp.spatial_transform
    poses: wp.array(dtype=wp.spatial_transform)


@wp.func
def moved(t: wp.spatial_transform, by: wp.vec3) -> wp.spatial_transform:
    return wp.spatial_transform(wp.transform_get_translation(t) + by, wp.transform_get_rotation(t))


@wp.kernel
def old_name_everywhere(frame: Frame, out: wp.array[wp.transform]):
    i = wp.tid()
    out[i] = moved(frame.pose, wp.vec3(1.0, 0.0, 0.0)) * frame.poses[i]
    frame.poses[i] = wp.spatial_transform(wp.vec3(0.0, 0.0, float(i)), wp.quat_identity())


@pytest.mark.seed("S-XFM-002")
@pytest.mark.seed("D-11")
def test_the_old_name_as_dtype_annotation_and_constructor():
    made = wp.spatial_transform(wp.vec3(1.0, 2.0, 3.0), wp.quat(0.0, 0.0, 0.0, 1.0))
    assert type(made) is wp.transform and made.p == wp.vec3(1.0, 2.0, 3.0)
    poses = wp.array([made, made], dtype=wp.spatial_transform)
    assert poses.dtype is wp.transform and poses.numpy().shape == (2, 7)
    out = wp.zeros(2, dtype=wp.spatial_transform)
    wp.launch(old_name_everywhere, dim=2, inputs=[Frame(pose=made, poses=poses), out])
    assert out.numpy().tolist() == [[3.0, 4.0, 6.0, 0.0, 0.0, 0.0, 1.0]] * 2
    assert poses.numpy().tolist() == [[0, 0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 1]]


@pytest.mark.seed("S-XFM-007")
@pytest.mark.parametrize("scalar", PRECISIONS)
def test_anonymous_transforms_take_their_type_from_the_arguments(scalar):
    dtype = getattr(wp, scalar)
    vector, quaternion = wp.types.vector(3, dtype), wp.types.quaternion(dtype)

    @wp.kernel(module="unique")
    def k(p: vector, q: quaternion, out: wp.array(dtype=wp.types.transformation(dtype))):
        out[0] = wp.transformation(p, q)
        t = wp.transformation(q=q, p=p)
        out[1] = t * wp.transformation(wp.transform_get_translation(t), wp.quat_identity(dtype=dtype))

    out = wp.zeros(2, dtype=wp.types.transformation(dtype))
    wp.launch(k, dim=1, inputs=[(1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0), out])
    assert out.numpy().tolist() == [[1, 2, 3, 0, 0, 1, 0], [0, 0, 6, 0, 0, 1, 0]]
    wrong = wp.zeros(2, dtype=wp.transformd if scalar == "float32" else wp.transformf)
    with pytest.raises(RuntimeError, match="expected array"):
        wp.launch(k, dim=1, inputs=[(1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0), wrong])


@pytest.mark.seed("S-XFM-002")
def test_spatial_transform_is_the_old_name_of_transform():
    assert wp.spatial_transform is wp.transform
    out = wp.zeros(1, dtype=wp.transform)
    wp.launch(old_name, dim=1, inputs=[wp.transform(wp.vec3(0.0, 0.0, 0.0), wp.quat(0.0, 0.0, 1.0, 0.0)), out])
    assert out.numpy()[0].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]


@wp.kernel
def geometry(a: wp.vec3, b: wp.vec3, s: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat33)):
    s[0] = wp.dot(a, b)
    s[1] = wp.length(a)
    s[2] = wp.degrees(wp.length(b))
    v[0] = wp.cross(a, b)
    product = wp.outer(a, b) + wp.identity(n=3, dtype=float)
    m[0] = wp.inverse(product)
    m[1] = wp.identity(n=3, dtype=wp.float32)


@pytest.mark.seed("S-BLT-003")
@pytest.mark.seed("S-BLT-004")
def test_functions_of_geometry():
    a, b = np.array([1.0, 2.0, 2.0]), np.array([0.5, -1.0, 0.75])
    s, v, m = wp.zeros(3), wp.zeros(1, dtype=wp.vec3), wp.zeros(2, dtype=wp.mat33)
    wp.launch(geometry, dim=1, inputs=[wp.vec3(*a), wp.vec3(*b), s, v, m])
    np.testing.assert_allclose(s.numpy(), [a @ b, 3.0, np.degrees(np.linalg.norm(b))], rtol=1e-6)
    np.testing.assert_allclose(v.numpy()[0], np.cross(a, b), rtol=1e-6)
    np.testing.assert_allclose(m.numpy(), [np.linalg.inv(np.outer(a, b) + np.eye(3)), np.eye(3)], atol=1e-5)


@wp.kernel
def output_arguments(q: wp.quat, axis_out: wp.array(dtype=wp.vec3), angle_out: wp.array(dtype=float)):
    i = wp.tid()
    axis = wp.vec3(7.0, 7.0, 7.0)
    angle = float(7.0)
    if i == 1:
        wp.quat_to_axis_angle(q, axis, angle)
    axis_out[i] = axis
    angle_out[i] = angle


@pytest.mark.seed("S-BLT-005")
def test_output_arguments_write_to_the_locals_of_the_caller():
    q = Rotation.from_rotvec([0.0, 0.0, 0.5]).as_quat()
    axis, angle = wp.zeros(2, dtype=wp.vec3), wp.zeros(2)
    wp.launch(output_arguments, dim=2, inputs=[wp.quat(*q), axis, angle])
    np.testing.assert_allclose(axis.numpy(), [[7, 7, 7], [0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(angle.numpy(), [7, 0.5], atol=1e-6)


@wp.kernel
def output_of_a_constant(out: wp.array(dtype=float)):
    wp.quat_to_axis_angle(wp.quat_identity(), wp.vec3(0.0, 0.0, 0.0), out[0])


@pytest.mark.seed("S-BLT-005")
def test_an_output_argument_must_be_a_local():
    with pytest.raises(wp.CompileError, match="argument 'axis' .* must be a local variable"):
        wp.launch(output_of_a_constant, dim=1, inputs=[wp.zeros(1)])
