"""Mathematical functions of the device."""
