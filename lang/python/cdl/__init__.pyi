"""Types of the package cdl.  Names of models, experiments and results come from the text: they are attributes."""
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Value = Union[float, int, str, Sequence[float], Sequence[Sequence[float]], npt.NDArray[Any]]

__version__: str
OPEN: int
STICK: int
SLIP: int
OK: int
EXPECT: int
USAGE: int
MODEL: int
SOLVER: int
IO: int
MEMORY: int

class Place(NamedTuple):
    file: str
    line: int
    column: int
    end_line: int
    end_column: int

class Diagnostic(NamedTuple):
    code: str
    severity: str
    message: str
    at: Optional[Place]
    hints: Tuple[str, ...]
    seconds: Tuple[Tuple[Optional[Place], str], ...]
    replacement: Optional[Tuple[Optional[Place], str]]

class Error(Exception):
    status: int
    diagnostics: Tuple[Diagnostic, ...]
    def __init__(
        self,
        message: str,
        status: int = ...,
        result: Optional[Result] = ...,
        diagnostics: Iterable[Diagnostic] = ...,
    ) -> None: ...
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    result: Optional[Result]

class UnknownName(Error, KeyError): ...

class Interrupted(KeyboardInterrupt):
    result: Any

class Warning(UserWarning): ...

class Quantity(NamedTuple):
    value: Any
    unit: str
    lo: float
    hi: float
    doc: str
    rate: Any
    structural: bool

class Table:
    units: Dict[str, str]
    def __init__(self, columns: Dict[str, Any], units: Optional[Dict[str, str]] = ...) -> None: ...
    def keys(self) -> Iterable[str]: ...
    def items(self) -> Iterable[Tuple[str, Any]]: ...
    def values(self) -> Iterable[Any]: ...
    def frame(self) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, name: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

class View:
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, index: Union[str, int, Tuple[int, ...]]) -> Any: ...
    def __call__(self, *arguments: float) -> Any: ...

class Picture(bytes):
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...

class Result:
    model: str
    backend: str
    ended: str
    message: str
    t_end: float
    seconds: float
    samples: int
    steps: int
    t: Numbers
    @property
    def names(self) -> List[str]: ...
    @property
    def impacts(self) -> Table: ...
    def unit(self, expression: str) -> str: ...
    def describe(self) -> Table: ...
    def frame(self, *names: Union[str, Iterable[str]]) -> Any: ...
    def picture(self, what: str, format: str = ..., **keys: Any) -> Picture: ...
    def __getitem__(self, expression: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

class Model:
    name: str
    def __call__(self, **params: Value) -> Model: ...
    @property
    def params(self) -> Dict[str, Quantity]: ...
    @property
    def initial(self) -> Dict[str, Quantity]: ...
    def run(
        self,
        duration: Union[None, float, str] = ...,
        backend: Optional[str] = ...,
        progress: Optional[Callable[[float], Any]] = ...,
        **options: Any,
    ) -> Result: ...
    def step(self, inputs: Union[str, Iterable[str]] = ..., backend: str = ..., **options: Any) -> Stepper: ...

class Experiment:
    name: str
    def run(
        self,
        jobs: int = ...,
        output: Union[None, str, os.PathLike[str]] = ...,
        progress: Optional[Callable[[float], Any]] = ...,
    ) -> Report: ...

class Report:
    records: List[Dict[str, Any]]
    status: int
    ok: bool
    points: Table
    @property
    def expectations(self) -> Table: ...
    def frame(self) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __len__(self) -> int: ...

class Module:
    name: str
    models: Dict[str, Model]
    experiments: Dict[str, Experiment]
    def eval(self, expression: str) -> Any: ...
    def help(self, name: str) -> str: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...

class Stepper:
    stopped: bool
    @property
    def t(self) -> float: ...
    @property
    def names(self) -> List[str]: ...
    @property
    def impacts(self) -> Table: ...
    def step(self, to: float) -> bool: ...
    def input(self, name: str, value: Union[Value, Callable[[float], Any]], *more: Value) -> None: ...
    def save(self) -> bytes: ...
    def load(self, state: bytes) -> None: ...
    def copy(self) -> Stepper: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Value) -> None: ...

def load(path: Union[str, os.PathLike[str]]) -> Module: ...
def loads(text: str, name: str = ...) -> Module: ...
def run(
    path: Union[str, os.PathLike[str]],
    params: Optional[Dict[str, Value]] = ...,
    output: Union[None, str, os.PathLike[str]] = ...,
    jobs: int = ...,
    problems: Union[None, str, os.PathLike[str]] = ...,
) -> Report: ...
def step(model: Model, inputs: Union[str, Iterable[str]] = ..., backend: str = ..., **options: Any) -> Stepper: ...
def load_ipython_extension(shell: Any) -> None: ...
