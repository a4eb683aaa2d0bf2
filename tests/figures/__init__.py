"""What the control plane does in how much time, beside the kernel and its daemons."""
