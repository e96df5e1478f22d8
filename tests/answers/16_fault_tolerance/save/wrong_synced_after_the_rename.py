"""Renames first, and syncs the files under their final names."""


def save(disk, folder, files):
    partial = f"{folder}.partial"
    if disk.exists(partial):
        disk.remove(partial)
    disk.mkdir(partial)
    for name, data in files.items():
        disk.write(f"{partial}/{name}", data)
    disk.rename(partial, folder)
    for name in files:
        disk.sync(f"{folder}/{name}")
    disk.sync(folder)
    disk.sync(folder.rpartition("/")[0])
