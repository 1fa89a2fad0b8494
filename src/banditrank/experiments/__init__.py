"""The paper's studies: what is run, how it is read, and the page that shows it."""
