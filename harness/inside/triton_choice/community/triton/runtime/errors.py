"""What goes wrong in launching and tuning."""


class OutOfResources(Exception): ...


class PTXASError(Exception): ...
