"""NumPy when it is first used: its import takes several times as long as that of all else here."""


class _Later:
    """Stands for a module; what is asked of it once stays here, so it costs nothing more."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        import importlib
        try:
            value = getattr(importlib.import_module(self._name), name)
        except ModuleNotFoundError as e:
            if e.name != self._name:
                raise
            raise ModuleNotFoundError("arrays of cdl need the module '%s': apt-get install python3-%s, or pip install %s"
                                      % (self._name, self._name, self._name), name=self._name) from None
        setattr(self, name, value)
        return value


np = _Later("numpy")
