"""Bills of materials (CycloneDX) of programs, by cargo-cyclonedx."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "0.5.9"


def why_none():
    """Why no bills can be made on this machine, if so."""
    asked = subprocess.run(["cargo", "cyclonedx", "--version"], capture_output=True, text=True)
    if asked.returncode != 0:
        return f"there is no cargo-cyclonedx (cargo install --locked --version {VERSION} cargo-cyclonedx)"
    return None


def bills_of_materials(target, names):
    """The text of the bill of each program or library. cargo-cyclonedx writes bills beside the manifest of every crate of the workspace; none stays
    there. A bill's file is named by the target and its kinds: `kgc_bin.cdx.json`, `quiver_cdylib-staticlib-lib.cdx.json`."""
    command = ["cargo", "cyclonedx", "--format", "json", "--spec-version", "1.5", "--target", target, "--describe", "binaries"]
    asked = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, check=True)
    folders = [Path(package["manifest_path"]).parent for package in json.loads(asked.stdout)["packages"]]
    try:
        subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
        files = [file for folder in folders for file in folder.glob("*_*.cdx.json")]
        bills = {file.name.removesuffix(".cdx.json").rpartition("_")[0]: file.read_bytes() for file in files}
        return {name: bills[name] for name in names}
    finally:
        for folder in folders:
            for written in folder.glob("*.cdx.json"):
                written.unlink()
