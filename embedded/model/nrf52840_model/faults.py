"""How a run of the model ends before its time."""


class ModelFault(Exception):
    """The firmware did what the hardware forbids or leaves undefined, such as a third write to a word of flash."""


class PowerLost(Exception):
    """The supply failed in the middle of a flash operation; `operation` says which one, counted from 1."""

    def __init__(self, operation: int):
        super().__init__(f"power lost at flash operation {operation}")
        self.operation = operation
