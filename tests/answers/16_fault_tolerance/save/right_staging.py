"""A folder in the parent, .staging, stays there; in it all is written, under the final name."""


def save(disk, folder, files):
    parent, _, name = folder.rpartition("/")
    staging = f"{parent}/.staging"
    if not disk.exists(staging):
        disk.mkdir(staging)
    if disk.exists(f"{staging}/{name}"):
        disk.remove(f"{staging}/{name}")
    disk.mkdir(f"{staging}/{name}")
    for file in files:
        disk.write(f"{staging}/{name}/{file}", files[file])
        disk.sync(f"{staging}/{name}/{file}")
    disk.sync(f"{staging}/{name}")
    disk.rename(f"{staging}/{name}", folder)
    disk.sync(parent)
    disk.sync(staging)
