"""Writes into the final folder: for a while half of it is there."""


def save(disk, folder, files):
    if disk.exists(folder):
        disk.remove(folder)
    disk.mkdir(folder)
    for name, data in files.items():
        disk.write(f"{folder}/{name}", data)
        disk.sync(f"{folder}/{name}")
    disk.sync(folder)
    disk.sync(folder.rpartition("/")[0])
