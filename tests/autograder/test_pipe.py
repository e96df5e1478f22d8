"""A command whose reader has enough, as in `autograder export | head`."""

import subprocess
import sys

import graded_class


def test_export_into_a_closed_pipe_ends_without_a_word(tmp_path):
    where = graded_class.make(tmp_path)
    places = ["--course", str(where.course), "--class", str(where.class_dir)]
    command = [sys.executable, "-m", "autograder", "export", *places]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as export:
        export.stdout.close()  # as head does
        said = export.stderr.read()
        export.wait()
    assert said == b""
