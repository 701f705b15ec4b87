# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that the modules share which do the installer's work."""

from __future__ import annotations


class ModuleDocFragment:
    """See https://docs.ansible.com/ansible/latest/dev_guide/developing_modules_documenting.html#documentation-fragments."""

    DOCUMENTATION = r"""
options:
  directory:
    description: The directory of the inputs and of what is made.
    type: path
    required: true
  release_image:
    description:
      - The pullspec of the release. E(OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE) if not given, or else the one of the
        directory's last run, or that of the lab payload that was built last.
    type: str
  release_version:
    description: The version of the release, which the release itself tells if not given.
    type: str
  release_profile:
    description: The minor release to behave like, as V(4.18), or V(main). That of the version if not given.
    type: str
  cache:
    description: Where base ISOs are kept; C(agentlab) below E(XDG_CACHE_HOME) if not given.
    type: path
  consume:
    description: Delete the inputs afterwards, as openshift-install does.
    type: bool
    default: false
"""
