"""Calls of XLA's FFI on a CUDA device, made by hand: the frames that XLA hands to a handler, by its C header."""

import ctypes
import re

import numpy as np

INITIALIZE, EXECUTE = 2, 3
TYPES = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float32": 11, "float64": 12}
NUMBER, BUFFER, METADATA = 3, 1, 1
Pointer, Size, Int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def structure(name, **fields):
    return type(
        name, (ctypes.Structure,), {"_fields_": [("struct_size", Size), ("extension", Pointer), *fields.items()]}
    )


Version = structure("Version", major=Int, minor=Int)
ErrorArguments = structure("ErrorArguments", message=ctypes.c_char_p, code=Int)
ErrorText = structure("ErrorText", error=Pointer, message=ctypes.c_char_p)
ErrorEnd = structure("ErrorEnd", error=Pointer)
StreamArguments = structure("StreamArguments", context=Pointer, stream=Pointer)
OrdinalArguments = structure("OrdinalArguments", context=Pointer, ordinal=ctypes.c_int32)
Buffer = structure("Buffer", dtype=Int, data=Pointer, rank=ctypes.c_int64, extents=Pointer)
Items = structure("Items", count=ctypes.c_int64, kinds=Pointer, items=Pointer)
Attributes = structure("Attributes", count=ctypes.c_int64, kinds=Pointer, names=Pointer, items=Pointer)
FUNCTIONS = [
    *("create_error", "message_of_error", "destroy_error", "register", "get_stream", "type_register"),
    *("context_get", "state_set", "state_get", "allocate", "free", "schedule", "thread_count", "future_create"),
    *("future_available", "future_error", "run_id", "get_ordinal"),
]
Api = structure("Api", version=Version, internal=Pointer, **dict.fromkeys(FUNCTIONS, Pointer))
CallFrame = structure(
    "CallFrame", api=Pointer, context=Pointer, stage=Int, arguments=Items, results=Items, attributes=Attributes,
    future=Pointer,
)  # fmt: skip


class Metadata(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("version", Version), ("traits", ctypes.c_uint32)]


class MetadataExtension(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("type", Int), ("next", Pointer), ("metadata", Pointer)]


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", Size)]


class Number(ctypes.Structure):
    _fields_ = [("dtype", Int), ("value", Pointer)]


class XlaError(Exception):
    pass


class Xla:
    """XLA on a CUDA device, as its handlers see it: with a stream, and a device by its number, or none in the tables of
    old versions."""

    def __init__(self, stream=0, ordinal=0, has_ordinal=True):
        self.stream, self.ordinal, self.errors, self.fails = stream, ordinal, {}, False
        of_errors = {
            "create_error": ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(ErrorArguments))(self._create),
            "message_of_error": ctypes.CFUNCTYPE(None, ctypes.POINTER(ErrorText))(self._message),
            "destroy_error": ctypes.CFUNCTYPE(None, ctypes.POINTER(ErrorEnd))(self._destroy),
        }
        self.functions = {
            **of_errors,
            "get_stream": ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(StreamArguments))(self._stream),
            "get_ordinal": ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(OrdinalArguments))(self._ordinal),
        }
        pointers = {name: ctypes.cast(function, Pointer).value for name, function in self.functions.items()}
        size = ctypes.sizeof(Api) - (0 if has_ordinal else ctypes.sizeof(Pointer))
        self.api = Api(size, None, Version(ctypes.sizeof(Version), None, 0, 3 if has_ordinal else 1), None, **pointers)

    # ---- the functions of XLA ----

    def _create(self, arguments):
        number = len(self.errors) + 1
        self.errors[number] = arguments[0].message.decode()
        return number

    def _message(self, arguments):
        self.kept = self.errors[arguments[0].error].encode()
        arguments[0].message = self.kept

    def _destroy(self, arguments):
        del self.errors[arguments[0].error]

    def _stream(self, arguments):
        if self.fails:
            self.errors[77] = "the stream is lost"
            return 77
        arguments[0].stream = self.stream
        return None

    def _ordinal(self, arguments):
        arguments[0].ordinal = self.ordinal
        return None

    # ---- calls ----

    def _buffers(self, arrays):
        """(extents, dtype, address) of each; the structures are kept in self.alive."""
        made = []
        for shape, dtype, address in arrays:
            extents = (ctypes.c_int64 * len(shape))(*shape)
            self.alive.append(extents)
            made.append(
                Buffer(ctypes.sizeof(Buffer), None, TYPES[dtype], address, len(shape), ctypes.addressof(extents))
            )
        kinds = (Int * len(made))(*[BUFFER] * len(made))
        items = (Pointer * len(made))(*[ctypes.addressof(one) for one in made])
        self.alive += [made, kinds, items]
        return Items(ctypes.sizeof(Items), None, len(made), ctypes.addressof(kinds), ctypes.addressof(items))

    def call(self, capsule, number, arguments, results, stage=EXECUTE):
        """Calls a handler without the GIL, as XLA does. Arrays are of Weft, or (shape, dtype, address)."""
        self.alive: list = []
        value = ctypes.c_int64(number)
        scalar, name = Number(TYPES["int64"], ctypes.addressof(value)), Text(b"call", 4)
        kinds = (Int * 1)(NUMBER)
        names, items = (Pointer * 1)(ctypes.addressof(name)), (Pointer * 1)(ctypes.addressof(scalar))
        attributes = Attributes(
            ctypes.sizeof(Attributes),
            None,
            1,
            ctypes.addressof(kinds),
            ctypes.addressof(names),
            ctypes.addressof(items),
        )
        frame = CallFrame(
            ctypes.sizeof(CallFrame), None, ctypes.addressof(self.api), None, stage,
            self._buffers(map(described, arguments)), self._buffers(map(described, results)), attributes, None,
        )  # fmt: skip
        error = handler_of(capsule)(ctypes.byref(frame))
        if error:
            raise XlaError(self.errors.pop(error))

    def traits(self, capsule):
        metadata = Metadata(ctypes.sizeof(Metadata), Version(ctypes.sizeof(Version), None, 0, 0), 99)
        extension = MetadataExtension(ctypes.sizeof(MetadataExtension), METADATA, None, ctypes.addressof(metadata))
        frame = CallFrame(ctypes.sizeof(CallFrame), ctypes.addressof(extension), ctypes.addressof(self.api))
        assert not handler_of(capsule)(ctypes.byref(frame))
        return metadata.traits


def described(array):
    if isinstance(array, tuple):
        return array
    inner = tuple(getattr(array.dtype, "_shape_", ()))
    scalar = np.dtype(array.numpy().dtype).name if array.size else "float32"
    return (*array.shape, *inner), scalar, array.ptr


def handler_of(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = Pointer, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"xla._CUSTOM_CALL_TARGET")
    return ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(CallFrame))(address)


def calls_on_cuda(function, *arguments):
    """(name of the handler, number of the call) for each call of Weft in the function's program for CUDA."""
    import jax

    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    return [
        (name, int(number)) for name, number in re.findall(r"custom_call @(weft_\w+)\(.*?call = (-?\d+) : i64", text)
    ]
