"""`hf:owner/name` in, the data files of that repository on this machine out.

    hf:owner/name                         all splits of its default config
    hf:owner/name@revision                a branch, tag or commit
    hf:owner/name:split                   or :config, or :config/split

Read from a folder laid out as `owner/name/…` where one is named (`mirror`, or $OPENCLAW_LAB_HF_MIRROR), else by
huggingface_hub: from $HF_ENDPOINT, kept below $HF_HOME, and with $HF_HUB_OFFLINE from what is kept there alone. This is
the one place of the experiments that touches the network, and does so only because somebody wrote `hf:`. A token is
huggingface_hub's own affair: it is not sent to the address of a mirror, and no message here repeats what a server or
that library says.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openclaw_lab.errors import DataError, LabError, MissingExtra, OfflineError
from openclaw_lab.experiments.hub_files import HubFile, chosen, is_rows
from openclaw_lab.skills.frontmatter import parts_of

HUB = "hf:"
MIRROR = "OPENCLAW_LAB_HF_MIRROR"
# Bytes that are fetched without a further question.
MOST = 2_000_000_000
_NAME = re.compile(r"hf:(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:@(?P<revision>[^:\s]+))?(?::(?P<wanted>\S+))?")
_CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Reference:
    """What `hf:owner/name@revision:config/split` says."""

    text: str
    id: str
    revision: str
    wanted: str

    @classmethod
    def of(cls, text: str) -> Reference:
        """Read it, or a DataError."""
        match = _NAME.fullmatch(text)
        if not match or ".." in match["owner"] + match["name"] + (match["revision"] or ""):
            raise DataError(text, expected="hf:owner/name, hf:owner/name@revision or hf:owner/name:config/split")
        return cls(text, f"{match['owner']}/{match['name']}", match["revision"] or "", match["wanted"] or "")

    @property
    def plain(self) -> str:
        """Without what is wanted of it."""
        return f"{HUB}{self.id}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A data file on this machine, and what each of its rows is told: the split."""

    path: Path
    split: str

    @property
    def fields(self) -> Mapping[str, str]:
        """For rows that do not say it themselves."""
        return {"split": self.split}


@dataclass(frozen=True, slots=True)
class Repository:
    """The files of a repository that were asked for; `revision` is the commit, empty for a folder."""

    id: str
    revision: str
    files: tuple[LocalFile, ...]


def fetched(text: str, mirror: str | Path = "") -> Repository:
    """The data files of `hf:…`; `mirror` is a folder that holds `owner/name`, or the address of another hub."""
    reference = Reference.of(text)
    place = _place(mirror)
    if isinstance(place, Path):
        return _mirrored(reference, place)
    return _downloaded(reference, place)


def _place(mirror: str | Path) -> Path | str:
    """A folder, or the address of a hub; empty for the usual one."""
    if mirror:
        return _folder(str(mirror)) if "://" not in str(mirror) else _address(str(mirror))
    if os.environ.get(MIRROR):
        return _place(os.environ[MIRROR])
    named = os.environ.get("HF_ENDPOINT", "")
    return _address(named) if named.startswith("file:") else ""


def _address(text: str) -> Path | str:
    return _folder(urlsplit(text).path) if text.startswith("file:") else text


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise DataError(f"mirror {text}", expected="a folder that holds owner/name, or the https:// address of a hub")
    return path


# --- a folder -----------------------------------------------------------------------------------------------------


def _mirrored(reference: Reference, folder: Path) -> Repository:
    name = reference.id + (f"@{reference.revision}" if reference.revision else "")
    tried = [folder / name, folder / "datasets" / name]
    root = next((each for each in tried if each.is_dir()), None)
    if root is None:
        raise DataError(reference.text, f"no folder {tried[0]}", "the repository in the mirror", "put it there")
    return _local(reference, root, "")


def _local(reference: Reference, root: Path, revision: str) -> Repository:
    """What is wanted of a repository that lies in a folder."""
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    files = chosen(reference.plain, names, _card(root / _CARD), reference.wanted)
    return Repository(reference.id, revision, tuple(LocalFile(root / each.name, each.split) for each in files))


def _card(path: Path) -> Mapping[str, Any]:
    """The head of the card; empty where it cannot be read: files are then told by their names."""
    try:
        return parts_of(path.read_text("utf-8")).values if path.is_file() else {}
    except (OSError, ValueError):
        return {}


# --- the Hub ------------------------------------------------------------------------------------------------------


def _downloaded(reference: Reference, endpoint: str) -> Repository:
    try:
        import huggingface_hub as hub
        from huggingface_hub import constants
    except ImportError:
        raise MissingExtra(f"reading {reference.text}", "huggingface_hub", "data") from None
    given: dict[str, Any] = {"endpoint": endpoint, "token": False} if endpoint else {}
    common: dict[str, Any] = {"repo_type": "dataset", "library_name": "openclaw-lab", **given}
    if constants.HF_HUB_OFFLINE:
        return _kept(reference, Path(constants.HF_HUB_CACHE), "HF_HUB_OFFLINE is set")
    with _translated(reference, endpoint or constants.ENDPOINT):
        try:
            about = hub.HfApi(**given).dataset_info(
                reference.id, revision=reference.revision or None, files_metadata=True, timeout=20
            )
        except Exception as error:
            if not _unreachable(error):
                raise
            return _kept(reference, Path(constants.HF_HUB_CACHE), "the Hub does not answer")
        files = _listed(reference, about)
        patterns = [_literally(each.name) for each in files] + [_CARD]
        revision = reference.revision or None  # the name, so that it is found again by it
        folder = str(hub.snapshot_download(reference.id, revision=revision, allow_patterns=patterns, **common))
    local = tuple(LocalFile(Path(folder) / each.name, each.split) for each in files)
    return Repository(reference.id, Path(folder).name, local)


def _listed(reference: Reference, about: Any) -> list[HubFile]:
    sizes = {each.rfilename: each.size or 0 for each in about.siblings or ()}
    card = about.card_data.to_dict() if about.card_data else {}
    files = chosen(reference.plain, sizes, card, reference.wanted)
    size = sum(sizes[each.name] for each in files)
    if size > MOST:
        splits = ", ".join(dict.fromkeys(each.split for each in files))
        found = f"{size / 1e9:,.1f} GB in {len(files)} files"
        todo = f"name one of its splits ({splits}), or download it yourself and give the folder"
        raise DataError(reference.text, found, f"at most {MOST / 1e9:.0f} GB", todo)
    return files


def _kept(reference: Reference, cache: Path, why: str) -> Repository:
    """What an earlier download left, as the Hub's cache is laid out; an OfflineError where there is nothing of it."""
    root = cache / f"datasets--{reference.id.replace('/', '--')}"
    named = reference.revision or "main"
    try:
        commit = (root / "refs" / named).read_text("ascii").strip()
    except (OSError, ValueError):
        commit = named
    folder = root / "snapshots" / commit
    if not any(is_rows(each.name) for each in folder.rglob("*") if each.is_file()):
        todo = f'set {MIRROR} or mirror="…" to a folder with {reference.id}, or HF_ENDPOINT to a hub that answers'
        raise OfflineError(reference.text, f"{why}, and no copy of it is kept here", "a copy or a network", todo)
    return _local(reference, folder, commit)


def _literally(name: str) -> str:
    """A pattern that fits this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


@contextmanager
def _translated(reference: Reference, endpoint: str) -> Iterator[None]:
    """What goes wrong within, as one line of ours."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of a missing token, of links that a system cannot make
            yield
    except LabError:
        raise
    except Exception as error:
        raise _said(reference, error, _host(endpoint)) from None


def _host(endpoint: str) -> str:
    """An address without what may be a credential."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _said(reference: Reference, error: Exception, host: str) -> LabError:
    kinds = {each.__name__ for each in type(error).__mro__}
    page = f"{host}/datasets/{reference.id}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "GatedRepoError" in kinds:
        todo = f"accept its terms on {page}, then log in: hf auth login"
        return DataError(reference.text, "a repository that is open to those who accept its terms", todo=todo)
    if "RepositoryNotFoundError" in kinds or status in (401, 404):
        if "RevisionNotFoundError" in kinds:
            return DataError(reference.text, f"no revision {reference.revision!r}", f"one that {page} has")
        todo = "check its name; of a private one log in: hf auth login"
        return DataError(reference.text, "no such data repository", f"one that {host} has", todo)
    if "HFValidationError" in kinds:
        return DataError(reference.text, expected="hf:owner/name, as the Hub spells names")
    if _unreachable(error):
        return OfflineError(reference.text, f"{host} does not answer", "a network", f'{MIRROR} or mirror="…"')
    if isinstance(error, OSError) and error.strerror:
        return DataError(reference.text, error.strerror, "room for the files below $HF_HOME")
    found = f"an answer with status {status}" if status else f"a {type(error).__name__}"
    return OfflineError(reference.text, f"{found} from {host}", "the files of the repository", "try again later")


_SILENT = {"OfflineModeIsEnabled", "LocalEntryNotFoundError", "ConnectionError", "TransportError", "Timeout",
           "TimeoutException", "ConnectError"}  # fmt: skip


def _unreachable(error: Exception) -> bool:
    """Whether nobody answered, as opposed to somebody who refused."""
    return bool({each.__name__ for each in type(error).__mro__} & _SILENT)
