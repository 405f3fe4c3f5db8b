"""Compile time of a kernel of about 80 lines with its gradient: the spheres of medium.py, on a tape and reversed."""

import medium
import numpy as np
import scenario


def launch_warp(wp, loaded):
    def array(values, dtype):
        return wp.array(np.array(values, dtype=np.float32), dtype=dtype, device=scenario.device, requires_grad=True)

    spheres = array([[0, 0, 0, 1], [2, 0, 1, 1]], wp.vec4)
    lamps = array([[5, 5, -5]], wp.vec3)
    image = wp.zeros((8, 8), dtype=wp.vec3, device=scenario.device, requires_grad=True)
    ones = wp.array(np.ones((8, 8, 3), dtype=np.float32), dtype=wp.vec3, device=scenario.device)
    tape = wp.Tape()
    with tape:
        wp.launch(loaded.render, dim=(8, 8), inputs=[8, 8, spheres, lamps, image], device=scenario.device)
    tape.backward(grads={image: ones})

    def check():
        medium.check(image.numpy(), int(loaded.__name__[-1]))
        assert np.isfinite(spheres.grad.numpy()).all() and np.abs(lamps.grad.numpy()).max() > 0.0

    return check


if __name__ == "__main__":
    scenario.measure_compile(
        "compile gradient",
        __doc__,
        {"weft": medium.source, "peer": medium.source},
        {"weft": launch_warp, "peer": launch_warp},
        backward=True,
    )
