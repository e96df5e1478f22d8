"""nbgrader's configuration for this course; nbgrader and its formgrader read this file.

    cd autograder && nbgrader autograde 01_ranks
    JUPYTER_CONFIG_PATH=$PWD/autograder jupyter lab

$CLASS names the class directory (build/class when unset). `autograder` builds the same
configuration in Python with `settings`, so the command line and the button use one engine.
"""

import os
import sys
from pathlib import Path

from traitlets.config import Config

from autograder.places import Places, places

COURSE_ID = "byhand"
PUBLIC = ("*.ipynb", "timestamp.txt")


def settings(where: Places) -> Config:
    """nbgrader's settings for one course and class; every path absolute."""
    prepare(where)
    config = Config()
    course = config.CourseDirectory
    course.root = str(where.course)
    course.course_id = COURSE_ID
    course.source_directory = str(where.solutions)
    course.release_directory = str(where.exercises)
    course.submitted_directory = str(where.submitted)
    course.autograded_directory = str(where.autograded)
    course.feedback_directory = str(where.feedback)
    course.db_url = f"sqlite:///{where.gradebook}"
    course.include = list(PUBLIC)
    config.Exchange.root = str(where.class_dir / "exchange")  # or the formgrader asks for one
    config.Autograde.exporter_class = "autograder.grade.gradebook.RestoringExporter"
    config.Autograde.sanitize_preprocessors = _preprocessors("CheckCellMetadata")
    config.Autograde.autograde_preprocessors = [
        "autograder.grade.gradebook.WriteVerdicts",
        "autograder.grade.gradebook.SaveScores",
        *_preprocessors("CheckCellMetadata"),
    ]
    config.GenerateAssignment.preprocessors = [
        *_preprocessors("LockCells", "ClearSolutions", "ClearOutput", "CheckCellMetadata"),
        *_preprocessors("ComputeChecksums", "SaveCells"),
        "autograder.release.generate.HiddenTests",
        *_preprocessors("ComputeChecksums", "CheckCellMetadata"),
    ]
    config.GenerateFeedback.exporter_class = "autograder.report.exporter.FeedbackExporter"
    config.GenerateFeedback.preprocessors = []
    return config


def prepare(where: Places) -> None:
    """Make the class directory, and let nbgrader find the `alembic` of this environment."""
    where.submitted.mkdir(parents=True, exist_ok=True)
    programs = str(Path(sys.prefix) / "bin")
    if programs not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])


def _preprocessors(*names: str) -> list[str]:
    return [f"nbgrader.preprocessors.{name}" for name in names]


if "get_config" in globals():  # nbgrader is reading this file
    get_config().merge(settings(places()))  # type: ignore[name-defined]  # noqa: F821
