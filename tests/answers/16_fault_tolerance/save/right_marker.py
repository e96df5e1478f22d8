"""A file of its own, made last, says that the folder is whole: no rename."""


def save(disk, folder, files):
    if disk.exists(folder):
        disk.remove(folder)
    disk.mkdir(folder)
    for name, data in files.items():
        disk.write(f"{folder}/{name}", data)
        disk.sync(f"{folder}/{name}")
    disk.sync(folder)
    disk.sync(folder.rpartition("/")[0])
    disk.write(f"{folder}/whole", b"")
    disk.sync(folder)


def newest(disk, parent):
    found = {}
    for name in disk.names(parent):
        step = name.removeprefix("step-")
        if name != step and step.isdigit() and disk.exists(f"{parent}/{name}/whole"):
            found[int(step)] = f"{parent}/{name}"
    return found[max(found)] if found else None
