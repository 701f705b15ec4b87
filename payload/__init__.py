"""Programs that run inside the lab's images and nodes, and the build of both."""
