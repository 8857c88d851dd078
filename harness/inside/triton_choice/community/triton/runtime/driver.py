"""The driver in use: asking for it fails, as it does where there is no GPU."""


class Drivers:
    @property
    def active(self):
        raise RuntimeError("0 active drivers ([]). There should only be one.")


driver = Drivers()
