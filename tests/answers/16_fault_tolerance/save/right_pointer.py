"""A file named latest says which is the newest: it is what is renamed."""


def save(disk, folder, files):
    parent = folder.rpartition("/")[0]
    if disk.exists(folder):
        disk.remove(folder)
    disk.mkdir(folder)
    for name in files:
        disk.write(f"{folder}/{name}", files[name])
    for name in disk.names(folder):
        disk.sync(f"{folder}/{name}")
    disk.sync(folder)
    disk.sync(parent)
    disk.write(f"{parent}/latest.new", folder.encode())
    disk.sync(f"{parent}/latest.new")
    disk.rename(f"{parent}/latest.new", f"{parent}/latest")
    disk.sync(parent)


def newest(disk, parent):
    if not disk.exists(f"{parent}/latest"):
        return None
    return disk.read(f"{parent}/latest").decode()
