"""What has changed upstream, and what of ours no longer agrees with it.

- `checkout`: files of a git checkout at a commit
- `facts`: facts of a source by section and name, their changes, and disagreements
- `assisted`, `agent`, `devscripts`, `installer`: the facts of each upstream project, and how ours compare
- `canary`: the table of sources and accepted differences, `ci/canary.yml`
- `report`: the page

Nothing of a checkout is run: its files are read as text, with bounds.
"""
