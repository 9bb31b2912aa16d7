"""What tests of the command line share: files to give it, and calls of it in a folder of its own."""
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zipfile
import zlib

SIZES = {"F32": 4, "I64": 8, "U8": 1}


def safetensors(tensors):
    """The bytes of a file of {name: (type, shape, bytes)}."""
    header = {}
    data = b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def torch_file(path, tensors):
    """Writes {name: (shape, bytes of float32)} as torch.save does."""
    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def numbers(values):
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    def tensor(key, shape, count):
        strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
        storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + numbers([count])[1:] + b"Q"
        return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + numbers(shape) + numbers(strides) +
                b"\x89}tR")

    parts = [text(name) + tensor(str(key), shape, len(content) // 4)
             for key, (name, (shape, content)) in enumerate(tensors.items())]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}" + text("state_dict") + b"}(" + b"".join(parts) + b"us.")
        for key, (_, content) in enumerate(tensors.values()):
            archive.writestr(f"a/data/{key}", content)


def read_safetensors(path):
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length]), content[8 + length:]


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def integers(values):
    return struct.pack(f"<{len(values)}q", *values)


def png(side, value):
    """A grey-blue square, as an RGB PNG."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes([value, value, 255]) * side for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Case(unittest.TestCase):
    program = None  # the path of russet

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def russet(self, *arguments, text=""):
        return subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              input=text, check=False, env=dict(os.environ, OMP_NUM_THREADS="1"))

    def good(self, *arguments, text=""):
        answer = self.russet(*arguments, text=text)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def lines(self, *arguments):
        return [json.loads(line) for line in self.good(*arguments, "--json").splitlines()]

    def mistake(self, *arguments, says=()):
        before = sorted(self.folder.rglob("*"))
        answer = self.russet(*arguments)
        shown = f"russet {' '.join(map(str, arguments))}: {answer.returncode}: {answer.stderr}"
        self.assertEqual(answer.returncode, 2, shown)
        self.assertEqual(len(answer.stderr.splitlines()), 1, shown)
        self.assertTrue(answer.stderr.startswith("russet: "), shown)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, answer.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "something was written")

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path
