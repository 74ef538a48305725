#!/usr/bin/env python3
"""Prints, for every uniform map of `kvsweep front --json`, the best front member that is no larger.

    mixed_maps.py FRONT.json
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        front = json.load(file)
    metric = front["study"]["metric"]
    print(f"{'uniform map':<12}{'bits':>6}{'loss':>9}    best member of at most this size ({metric})")
    for uniform in sorted(front["uniform"], key=lambda t: t["bytes"]):
        best = min((t for t in front["front"] if t["bytes"] <= uniform["bytes"]), key=lambda t: t["loss"])
        what = "itself"
        if best["number"] != uniform["number"]:
            what = (f"trial {best['number']}: {best['effective_bits']:.2f} bits, loss {best['loss']:.4f}, "
                    f"{best['map']}")
        print(f"{uniform['map']:<12}{uniform['effective_bits']:>6.2f}{uniform['loss']:>9.4f}    {what}")


if __name__ == "__main__":
    main()
