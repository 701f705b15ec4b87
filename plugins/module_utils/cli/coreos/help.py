"""What the commands of `agentlab iso`, `pxe`, `dev` and `pack`, and the options of `customize`, are for: descriptions for --help."""

from __future__ import annotations

COMMANDS = {
    "iso": "inspect and customize a live ISO image",
    "iso customize": "customize a live ISO image, its installation and the installed system",
    "iso ignition": "the Ignition config that is embedded in an ISO image",
    "iso ignition embed": "embed an Ignition config",
    "iso ignition show": "print the embedded Ignition config",
    "iso ignition remove": "remove the embedded Ignition config",
    "iso network": "the network settings that are embedded in an ISO image",
    "iso network embed": "embed NetworkManager keyfiles",
    "iso network extract": "print the embedded keyfiles, or extract them to a directory",
    "iso network remove": "remove the embedded keyfiles",
    "iso kargs": "the kernel arguments of an ISO image",
    "iso kargs modify": "append, delete or replace kernel arguments",
    "iso kargs reset": "restore the default kernel arguments",
    "iso kargs show": "print the kernel arguments",
    "iso extract": "extract files from an ISO image",
    "iso extract pxe": "extract kernel, initramfs and rootfs for a network boot",
    "iso extract minimal-iso": "extract a minimal ISO, which fetches its rootfs by URL",
    "iso reset": "restore an ISO image to its original state",
    "iso embed": "deprecated: as `iso ignition embed`",
    "iso show": "deprecated: as `iso ignition show`",
    "iso remove": "deprecated: as `iso ignition remove`",
    "pxe": "customize an initramfs for network boot",
    "pxe customize": "customize a live initramfs image, its installation and the installed system",
    "pxe ignition": "an Ignition config as an initramfs image",
    "pxe ignition wrap": "wrap an Ignition config in an initramfs image",
    "pxe ignition unwrap": "print the Ignition config of an initramfs image",
    "pxe network": "network settings as an initramfs image",
    "pxe network wrap": "wrap NetworkManager keyfiles in an initramfs image",
    "pxe network unwrap": "print the keyfiles of an initramfs image, or extract them to a directory",
    "dev": "inspect images",
    "dev show": "show the content of an image",
    "dev show iso": "print the structure of an ISO image as JSON",
    "dev show initrd": "list the files of an initramfs image",
    "dev extract": "extract files from an image",
    "dev extract initrd": "extract the files of an initramfs image",
    "pack": "pack images",
    "pack minimal-iso": "store the recipe of a minimal ISO in the full ISO",
}
"""Path of words -> what it does."""
COMMANDS |= {f"iso {path}": text for path, text in COMMANDS.items() if path.split()[0] in ("dev", "pack")}

CUSTOMIZE = {
    "dest_ignition": ("path", "Ignition config of the installed system; may be repeated"),
    "dest_device": ("path", "install to this disk when the live system boots"),
    "dest_console": ("spec", "console of the installed system, such as ttyS0,115200n8; may be repeated"),
    "dest_karg_append": ("arg", "append a kernel argument of the installed system; may be repeated"),
    "dest_karg_delete": ("arg", "delete a kernel argument of the installed system; may be repeated"),
    "network_keyfile": ("path", "NetworkManager keyfile, for the live and the installed system; may be repeated"),
    "network_nmstate": ("path", "nmstate file, for the live and the installed system; may be repeated"),
    "ignition_ca": ("path", "authority that Ignition trusts when it fetches, PEM; may be repeated"),
    "pre_install": ("path", "program to run before the installation; may be repeated"),
    "post_install": ("path", "program to run after the installation; may be repeated"),
    "installer_config": ("path", "configuration file of coreos-installer; may be repeated"),
    "live_ignition": ("path", "Ignition config of the live system; may be repeated"),
}
"""Option of `customize` -> its metavar and its purpose."""
