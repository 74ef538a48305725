"""Metadata and tensors of a GGUF file."""
import hashlib


class ConversionError(Exception):
    """One sentence for a person."""


class Gguf:
    """Metadata and tensors of one GGUF file."""

    def __init__(self, path):
        try:
            import gguf
        except ImportError as error:
            raise ConversionError(
                f"the Python package '{error.name}' is missing: scripts/setup installs it")
        with open_checked(path) as file:
            if file.read(4) != b"GGUF":
                raise ConversionError(f"{path} is not a GGUF file: it does not begin with 'GGUF'")
        self.path = path
        self._dequantize = gguf.quants.dequantize
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, IndexError, KeyError, OSError, OverflowError, MemoryError) as error:
            raise ConversionError(f"{path} is damaged or cut short ({error}): download it again")

    def get(self, key, default=None):
        field = self._reader.fields.get(key)
        return default if field is None else field.contents()

    def need(self, key):
        value = self.get(key)
        if value is None:
            raise ConversionError(f"{self.path} has no metadata key '{key}', which is needed")
        return value

    @property
    def tensors(self):
        return self._reader.tensors

    def dequantize(self, tensor):
        """float32, in the row-major shape that transformers uses (GGUF lists it reversed)."""
        shape = tuple(int(n) for n in reversed(tensor.shape))
        return self._dequantize(tensor.data, tensor.tensor_type).reshape(shape)


def open_checked(path):
    try:
        return open(path, "rb")
    except OSError as error:
        raise ConversionError(f"cannot read {path}: {error.strerror}")


def sha256_of(path):
    digest = hashlib.sha256()
    with open_checked(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shortest_float(value):
    """The float32 of the metadata as a person wrote it: 9.99999974e-06 -> 1e-05."""
    import numpy as np

    return float(str(np.float32(value)))
