# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Common options of the installer modules."""

from __future__ import annotations


class ModuleDocFragment:
    """See https://docs.ansible.com/ansible/latest/dev_guide/developing_modules_documenting.html#documentation-fragments."""

    DOCUMENTATION = r"""
options:
  directory:
    description: The assets directory, with the inputs and the output.
    type: path
    required: true
  release_image:
    description:
      - The pullspec of the release. E(OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE) if not given, or else the one of the
        directory's last run, or that of the newest lab payload.
    type: str
  release_version:
    description: The version of the release. Read from the release by default.
    type: str
  release_profile:
    description: The minor release to behave like, such as V(4.18), or V(main). That of the version by default.
    type: str
  cache:
    description: The cache of base ISOs. C(agentlab) below E(XDG_CACHE_HOME) by default.
    type: path
  consume:
    description: Delete the inputs afterwards, as openshift-install does.
    type: bool
    default: false
"""
