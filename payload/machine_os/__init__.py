"""The lab OS: a live ISO and disk image in CoreOS layout, made of the distribution's packages."""
