"""From a folder or zip of downloads to submitted/."""
