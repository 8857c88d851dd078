"""Called by a package file that is not lazy, when nothing needs Dynamo yet."""


def _dynamo_register_interface_for_device() -> None:
    """Nothing: Dynamo's setup has a step for it, and who needs it earlier asks `utils._dynamo`."""
