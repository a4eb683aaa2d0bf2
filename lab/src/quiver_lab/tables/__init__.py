"""Generated routing tables with the Internet's shape, and destinations to look up in them."""
