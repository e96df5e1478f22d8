"""What Accelerate, DeepSpeed, Megatron-core and JAX did where they were installed: others.json.

    python -m byhand.frameworks.lab.stored        trains by all four, and writes the file again

Lecture 18 shows the file, so that its page is the same whether they are installed or not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from byhand.frameworks import by_others, lab
from byhand.frameworks.lab import beside_jax
from byhand.frameworks.refusals import one_row_less, uneven
from byhand.model.gpt import GPT, random_gpt
from byhand.model.text import text_batches

FILE = Path(__file__).with_name("others.json")
COMMAND = "python -m byhand.frameworks.lab.stored"
PACKAGES = {"Accelerate": "accelerate", "DeepSpeed": "deepspeed", "Megatron-core": "megatron-core"}


def stored() -> dict[str, Any]:
    """The file: command, date, torch; ways by name; what their silences came to; and JAX."""
    return json.loads(FILE.read_text())


def case(num_steps: int = 20) -> tuple[GPT, list]:
    """The lecture's weights and batches."""
    weights = random_gpt(
        num_tokens=128, num_positions=16, num_features=32, num_heads=8, num_blocks=4
    )
    return weights, text_batches(num_steps, num_sequences=16, num_positions=16)


def ways() -> dict[str, dict[str, Any]]:
    """By framework: its version, a step's calls and bytes, its distance from one device."""
    weights, batches = case()
    alone = lab.losses_alone(weights, batches)
    found = {}
    for name, one in lab.train_all(lab.others(), weights, batches).items():
        told = {"calls": dict(one.calls), "sent_bytes": one.sent_bytes, "held": one.peak_bytes}
        furthest = max(lab.away(alone, one.losses))
        found[name] = {"version": version(PACKAGES[name]), **told, "furthest": furthest}
    return found


def silences() -> dict[str, float]:
    """By what none of them says: the furthest distance from one device on the same rows."""
    weights, batches = case()
    less = one_row_less(batches)
    by_rows: Mapping[str, Any] = {
        "Accelerate: unequal rows": partial(uneven, way=by_others.accelerate),
        "DeepSpeed: unequal rows": partial(uneven, way=by_others.deepspeed),
    }
    clipped = {"DeepSpeed: no gradient_clipping": partial(by_others.deepspeed, clip=None)}
    found = {}
    for some, on in ((by_rows, less), (clipped, batches)):
        alone = lab.losses_alone(weights, on)
        for name, losses in lab.losses_of(some, weights, batches).items():
            found[name] = max(lab.away(alone, losses))
    return found


def by_compiler() -> dict[str, Any]:
    """JAX's version; the calls of its programs and of ours; the distance; the refusal."""
    found, refusal = beside_jax.all_ways()
    told = {"version": version("jax"), "calls": beside_jax.kept(found), "refusal": refusal}
    return {**told, "furthest": beside_jax.furthest(found)}


def jax_or_stored() -> tuple[dict[str, Any], str]:
    """`by_compiler`, and that it was run here; where jax is absent, what is stored, and why."""
    if why := by_others.missing("jax"):
        kept = stored()
        return kept["jax"], f"{why}\nStored on {kept['date']}, jax {kept['jax']['version']}"
    found = by_compiler()
    return found, f"Run here, jax {found['version']}"


def main() -> None:
    """Write the file.

    Raises:
        SystemExit: one of them is not installed.
    """
    gone = [*lab.absent().values(), *filter(None, [by_others.missing("jax")])]
    if gone:
        raise SystemExit("; ".join(gone))
    head = {"command": COMMAND, "date": time.strftime("%Y-%m-%d"), "torch": version("torch")}
    told = {**head, "ways": ways(), "silences": silences(), "jax": by_compiler()}
    FILE.write_text(json.dumps(told, indent=1) + "\n")
    print(FILE.read_text())


if __name__ == "__main__":
    main()
