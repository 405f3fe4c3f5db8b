"""Renderers. They are not there yet: the names can be imported, and say so when they are used."""

from warp._unimplemented import names_of

globals().update(names_of(__name__, "renderers", "OpenGLRenderer UsdRenderer", ""))
