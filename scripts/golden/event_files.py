"""Event files as TensorBoard's own writer makes them, and what TensorBoard reads of russet's.

event_files.py golden FOLDER    writes FOLDER/event_file.tfevents, which tests/app/event_file_test.cpp makes again
event_files.py read FOLDER      prints, as lines of JSON, the scalars that TensorBoard shows for a folder of event files

Needs the package tensorboard alone: pip install --requirement scripts/golden/event_files_requirements.txt
"""
import json
import pathlib
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def scalars(time, step, values):
    value = [summary_pb2.Summary.Value(tag=tag, simple_value=number) for tag, number in values]
    return event_pb2.Event(wall_time=time, step=step, summary=summary_pb2.Summary(value=value))


def events():
    """Numbers with one and several bytes, zeros, which messages leave out at some places and keep at others, the numbers
    that float32 has no room for, and lengths that take two bytes."""
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    yield event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2")
    yield event_pb2.Event(wall_time=1.7e9 + 0.25, step=1, session_log=start)
    yield event_pb2.Event(wall_time=0, step=0, session_log=start)
    yield scalars(1.7e9 + 0.5, 1, [("train/loss", 2.302585092994046), ("train/learning_rate", 0.1)])
    yield scalars(1.7e9 + 1.125, 0, [("train/loss", 0.0)])
    yield scalars(0, 127, [("a", -0.0)])
    yield scalars(1.7e9 + 2, 128, [("b", 1e-45), ("\u03bb", 3.4e38)])
    yield scalars(1.7e9 + 3, 2**40 + 5, [("test/accuracy", float("nan")), ("test/loss", float("-inf"))])
    yield scalars(1.7e9 + 4, 300, [("x" * 200, 16777217.0)])


def write_golden(folder):
    with open(pathlib.Path(folder) / "event_file.tfevents", "wb") as file:
        writer = RecordWriter(file)
        for event in events():
            writer.write(event.SerializeToString())


def read(folder):
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    accumulator.Reload()
    for tag in accumulator.Tags()["scalars"]:
        for event in accumulator.Scalars(tag):
            print(json.dumps({"tag": tag, "step": event.step, "value": event.value}))


if __name__ == "__main__":
    {"golden": write_golden, "read": read}[sys.argv[1]](sys.argv[2])
