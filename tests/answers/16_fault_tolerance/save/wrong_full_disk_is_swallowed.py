"""A full disk is tidied up after, and nobody is told."""


def save(disk, folder, files):
    partial = f"{folder}.partial"
    if disk.exists(partial):
        disk.remove(partial)
    disk.mkdir(partial)
    try:
        for name, data in files.items():
            disk.write(f"{partial}/{name}", data)
            disk.sync(f"{partial}/{name}")
    except OSError:
        disk.remove(partial)
        return
    disk.sync(partial)
    disk.rename(partial, folder)
    disk.sync(folder.rpartition("/")[0])
