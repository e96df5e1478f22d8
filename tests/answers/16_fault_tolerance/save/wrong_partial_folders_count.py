"""newest takes the number in any name that begins with step-."""

import re


def newest(disk, parent):
    steps = {
        int(re.findall(r"\d+", name)[0]): name
        for name in disk.names(parent)
        if re.match(r"step-\d+", name)
    }
    return f"{parent}/{steps[max(steps)]}" if steps else None
