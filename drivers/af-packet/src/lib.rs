//! Linux network devices, by packet sockets.
