"""What memsim shows: for each verb or picture a folder with its data, its terminal, its figure, its page."""
