"""What a run's settings say about a person or a machine."""

from __future__ import annotations

import pytest

from afterrun.loaders.settings.personal import impersonal, is_personal

HOME, USERS = "/ho" + "me", "/Us" + "ers"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resnet50", "resnet50"),
        ("train/loss", "train/loss"),
        ("data/train.yaml", "data/train.yaml"),
        ("../data/x.bin", "../data/x.bin"),
        ("1/2", "1/2"),
        (f"{HOME}/ann/sets/coco.yaml", "coco.yaml"),
        (f"{HOME}/ann", "~"),
        (f"{USERS}/ann/", "~"),
        (f"C:{USERS}/Ann B/run".replace("/", "\\"), "run"),
        (f"C:{USERS}/Ann B".replace("/", "\\"), "~"),
        ("~/cache/model.bin", "model.bin"),
        ("~ann/model.bin", "model.bin"),
        ("/data", "data"),
        ("/", "/"),
        (f"file://{HOME}/ann/x", "x"),
        ("https://host/a/b", "https://host/a/b"),
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        (f"load {HOME}/ann/a/b.txt twice", "load b.txt twice"),
        (f"load('{HOME}/ann')", "load('~')"),
        ("--out=/scratch/ann/out.bin", "--out=out.bin"),
        ("by ann.b@example.org", "by …"),
        ("git@github.com:ann/x.git", "…:ann/x.git"),
        ("", ""),
    ],
)
def test_paths_and_addresses(text: str, expected: str) -> None:
    assert impersonal(text) == expected


@pytest.mark.parametrize("name", ["user", "Email", "wandb.entity", "a/hostname", "HF-TOKEN", "model.api_key"])
def test_personal_names(name: str) -> None:
    assert is_personal(name)


@pytest.mark.parametrize("name", ["lr", "num_tokens", "user_embedding", "hosts_per_node", "command_r"])
def test_other_names(name: str) -> None:
    assert not is_personal(name)


@pytest.mark.parametrize("text", ["a" * 200_000 + "@", "/a" * 100_000, "a@" * 100_000, " /" * 100_000])
def test_long_texts_are_no_trap(text: str) -> None:
    assert len(impersonal(text)) <= len(text)
