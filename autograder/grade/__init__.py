"""One submission: restored, run behind walls, judged, journalled, recorded."""
