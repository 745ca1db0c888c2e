"""How threads execute a program, who waits for whom, and who is told of each access."""
