"""Release, grade and return the exercises of the course."""
