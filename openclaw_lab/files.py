"""Files read and written safely: UTF-8 or one clear error; written whole or not at all.

Also the bundled folders (`notebooks`, `datasets`), wherever the package was installed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from openclaw_lab.errors import DataError

_PACKAGE = Path(__file__).resolve().parent


def bundled(name: str) -> Path:
    """The folder `datasets` or `notebooks`: inside an installed wheel, or beside the package in a clone."""
    inside = _PACKAGE / f"_{name}"
    return inside if inside.is_dir() else _PACKAGE.parent / name


def stamp(name: str | Path) -> tuple[int, int]:
    """When a file was changed (nanoseconds) and its size in bytes, as what tells whether it is the same; (0, 0): none.

    A name that is empty is none.
    """
    try:
        about = Path(name).expanduser().stat() if name else None
    except (OSError, ValueError, RuntimeError):
        about = None
    return (about.st_mtime_ns, about.st_size) if about else (0, 0)


def read_text(path: str | Path) -> str:
    """A whole UTF-8 file (a byte-order mark is dropped); anything else is one DataError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(Path(path), error) from None
    except (TypeError, ValueError):  # no path at all, or one with a NUL
        raise DataError("file", f"a {type(path).__name__}: {str(path)[:40]}", "the path of a file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, data[:4], error.start) from None


def unreadable(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be opened: missing, a folder, no permission."""
    if isinstance(error, FileNotFoundError):
        return DataError(str(path), expected="an existing file", todo="check the path")
    if isinstance(error, IsADirectoryError):
        return DataError(str(path), "a folder", "a file", "name the file in it")
    return DataError(str(path), error.strerror or type(error).__name__, "a readable file")


def wrong_encoding(where: object, head: bytes, offset: int) -> DataError:
    """The error for bytes that are not UTF-8, with the likely encoding when the first bytes tell."""
    guess = "UTF-16 text" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "bytes that are not UTF-8"
    return DataError(str(where), f"{guess} at byte {offset}", "UTF-8", "save the file as UTF-8")


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a UTF-8 file so that a reader sees the old one or the new one, never a part.

    `private`: readable by its owner only (for files that may hold a credential).
    """
    write_bytes(path, text.encode("utf-8"), private=private)


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """As `write_text`, for bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o600 if private else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
