"""Files that users write: experiments, scenarios and their settings, read and checked."""
