"""Programs worth looking at: ``python -m warp.examples.lagoon`` and its neighbours. Pictures go to ``out/``."""
