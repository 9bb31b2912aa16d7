"""Reads TensorBoard's event files, by what is published of their format alone: TFRecords with masked CRC-32Cs around
messages of event.proto and summary.proto."""
import struct


def crc32c(data):
    """Bit by bit (Castagnoli's polynomial, reflected)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The messages of a file. ValueError if it does not end with a whole record."""
    while content:
        if len(content) < 12:
            raise ValueError("the file ends in a length")
        size, crc = struct.unpack_from("<QI", content)
        if masked(content[:8]) != crc or len(content) < 16 + size:
            raise ValueError("the file ends in a record, or its length is damaged")
        message = content[12:12 + size]
        if masked(message) != struct.unpack_from("<I", content, 12 + size)[0]:
            raise ValueError("a record is damaged")
        yield message
        content = content[16 + size:]


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(message):
    """(number, value) of a message's fields: integers, doubles, floats, bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", message, at), at + 8
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", message, at), at + 4
        else:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def read_file(path):
    """(time, step, {tag: value} or "start") of each event behind the first, which must say the version."""
    found = []
    for number, message in enumerate(records(path.read_bytes())):
        event = dict(fields(message))
        if number == 0:
            if event.get(3) != b"brain.Event:2":
                raise ValueError(f"{path}: the first event does not say the version")
            continue
        values = [dict(fields(value)) for _, value in fields(event.get(5, b""))]
        what = "start" if event.get(7) == b"\x08\x01" else {value[1].decode(): value[2] for value in values}
        found.append((event.get(1, 0), event.get(2, 0), what))
    return found


def read_folder(folder):
    """What TensorBoard shows of a folder: {tag: {step: value}}. A start drops what earlier files hold from its step on."""
    shown = {}
    for path in sorted(folder.iterdir()):
        for _, step, what in read_file(path):
            if what == "start":
                shown = {tag: {at: value for at, value in row.items() if at < step} for tag, row in shown.items()}
                continue
            for tag, value in what.items():
                shown.setdefault(tag, {})[step] = value
    return shown


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]
