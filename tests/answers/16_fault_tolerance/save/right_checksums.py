"""An index of checksums decides: newest reads all files, and believes no name."""

import json
import zlib


def save(disk, folder, files):
    if disk.exists(folder):
        disk.remove(folder)
    disk.mkdir(folder)
    sums = json.dumps({name: zlib.crc32(data) for name, data in files.items()})
    for name, data in [*files.items(), ("sums.json", (sums + "\n").encode())]:
        disk.write(f"{folder}/{name}", data)
        disk.sync(f"{folder}/{name}")
    disk.sync(folder)
    disk.sync(folder[: folder.rindex("/")])


def _whole(disk, path):
    try:
        text = disk.read(f"{path}/sums.json").decode()
        sums = json.loads(text) if text.endswith("\n") else None
        return all(zlib.crc32(disk.read(f"{path}/{name}")) == sums[name] for name in sums)
    except (OSError, ValueError, TypeError):
        return False


def newest(disk, parent):
    names = [name for name in disk.names(parent) if name.removeprefix("step-").isdigit()]
    for name in sorted(names, key=lambda name: -int(name.removeprefix("step-"))):
        if _whole(disk, f"{parent}/{name}"):
            return f"{parent}/{name}"
    return None
