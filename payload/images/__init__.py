"""The component images and the release image of the lab payload, as OCI image layouts."""
