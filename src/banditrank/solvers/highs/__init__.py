"""Methods that hand a program to HiGHS: the paper's linear program, and an independent second opinion."""
