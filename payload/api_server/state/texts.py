"""Texts of hosts' statuses, with $PLACEHOLDERS."""

WAITING = "Waiting for host to send hardware details"
INSUFFICIENT_HW = "Host does not meet the minimum hardware requirements: $FAILING_VALIDATIONS"
PENDING_INPUT = "Waiting for user input: $FAILING_VALIDATIONS"
NOT_READY = "Host cannot be installed due to following failing validation(s): $FAILING_VALIDATIONS"
READY = "Host is ready to be installed"
PREPARED = "Host finished successfully to prepare for installation"
PREPARE_FAILED = "Host failed to prepare for installation due to following failing validation(s): $FAILING_VALIDATIONS"
PREPARE_TIMEOUT = "The host has encountered a preparation timeout, the following conditions failed: $FAILING_CONDITIONS"
#: What $FAILING_CONDITIONS names.
DISK_SPEED_UNKNOWN = "the installation disk speed check did not complete within the timeout."
IMAGES_UNKNOWN = "container availability was not determined within the timeout."
IN_PROGRESS = "Installation is in progress"
DISCONNECTED = "Host has stopped communicating with the installation service"
LOST_PREPARING = "Host failed to install due to timeout while connecting to host during the preparation phase."
SOFT_LOST = "Host is failing to perform periodic health check during the installation phase."
SOFT_FOUND = "Host recovered from failure to perform periodic health check during the installation phase."
LOST = "Host failed to install due to timeout while connecting to host during the installation phase."
INSTALL_TIMEOUT = "Host failed to install due to timeout while starting installation"
STAGE_TIMEOUT = "Host failed to install because its installation stage $STAGE took longer than expected $MAX_TIME"
NO_PROGRESS = (
    "Host failed to install because its installation stage $STAGE did not sufficiently progress in the last $MAX_TIME."
)
SOFT_NO_PROGRESS = (
    "Host installation stage $STAGE is not progressing sufficiently in the last $MAX_TIME. To troubleshoot use kubeconfig or "
    "connect to the node using ssh"
)
SOFT_TIMEOUT = "Host installation stage $STAGE is taking longer than expected $MAX_TIME"
REBOOT_TIMEOUT = (
    "Host timed out when pulling the configuration files. Verify in the host console that the host boots from the OpenShift "
    "installation disk $INSTALLATION_DISK and has network access to the cluster API. The installation will resume after the "
    "host successfully boots and can access the cluster API"
)
WRONG_BOOT = (
    "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order to boot "
    "from disk $INSTALLATION_DISK"
)
RESTARTED = "The host unexpectedly restarted during the installation"
POST_INSTALL_REGISTER = (
    "Host is trying to register after the cluster has already been installed. That most probably means that the host is booting from the "
    "installation ISO, and therefore not effectively joining the cluster. The request will be ignored. Fix the boot order and reboot the host."
)
UNBINDING = "Host is waiting to be unbound from the cluster"
