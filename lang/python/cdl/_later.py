"""NumPy when it is first used: its import takes several times as long as that of all else here."""


class _Later:
    """Stands for a module; what is asked of it once stays here, so it costs nothing more."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        import importlib
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


np = _Later("numpy")
