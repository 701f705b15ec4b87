"""The lab OS: a live ISO and disk image in CoreOS layout, built from the distribution's packages."""
