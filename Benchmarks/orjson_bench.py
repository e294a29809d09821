"""Parses the frames of a file repeatedly with orjson; prints {"framesPerSecond"}. Usage: orjson_bench.py FILE [SECONDS]"""
import json
import struct
import sys
import time

import orjson


def frames(path):
    with open(path, "rb") as file:
        data = file.read()
    position = 0
    while position + 4 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield data[position + 4 : position + 4 + length]
        position += 4 + length


def main():
    all_frames = list(frames(sys.argv[1]))
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    loads = orjson.loads
    for frame in all_frames:
        assert len(loads(frame)["jmObject"]["links"]) == 5
    parsed = 0
    start = time.process_time()
    while time.process_time() - start < seconds:
        for frame in all_frames:
            loads(frame)
        parsed += len(all_frames)
    elapsed = time.process_time() - start
    print(json.dumps({"framesPerSecond": int(parsed / elapsed), "orjson": orjson.__version__}))


main()
