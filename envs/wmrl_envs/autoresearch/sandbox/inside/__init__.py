"""What runs inside the wall: standard library only, mounted alone into the sandbox."""
