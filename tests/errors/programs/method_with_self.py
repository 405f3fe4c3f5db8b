import warp as wp


class Simulation:
    @wp.kernel
    def kernel(self, n: int):  # error: parameter 'self' of kernel 'kernel' has no type
        pass


kernel = Simulation.kernel
