"""The instructor's tool: exercises go out, hand-ins come in, marks and feedback go back.

A submission's way, a file for each step:

    collect/hand_ins.py   what an LMS packed becomes submitted/STUDENT/ASSIGNMENT/STEM.ipynb
    collect/door.py       whatever lies there is a hand-in, with a name that every page can hold
    grade/engine.py       takes in one hand-in; the journal's judgement on exactly this, or a new
    grade/intake.py       the released notebook, restored, with the student's work in it
    grade/warm_kernel.py  the questions, each with its time and the student's cells before it;
                          papermill runs the test cells in a warm kernel that sees no student's name
    grade/judge.py        asks each question; the student's cells run once, in a notebook of their
                          own, and what they defined on clean ranks: both in a sandbox
    grade/verdicts.py     what became of it, in words that a student may read
    grade/journal.py      the judgement, on the disk before anything else happens
    grade/gradebook.py    nbgrader's own code enters the points
    report/feedback.py    a page for the student, with the board that students asked to be on

A `Case` is one submission as the `Judge` in the kernel gets it; what the kernel shows are its
`Verdicts`; a `Judgement` is a line of the journal, which `WriteVerdicts` enters into a notebook of
nbgrader's. `GradeWork` is all of this as work for the queue.

Many at once is batch/: one queue, here or on Slurm. kernel.py is how papermill drives a kernel, for
judging and for `autograder run`, whose pages batch/page.py writes. release/ turns solutions/ into
exercises/. samples.py has the made-up hand-ins that course.py and demo.py grade before one's eyes.
"""
