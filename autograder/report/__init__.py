"""What comes of marks: feedback, the class page, CSV, similarity."""
