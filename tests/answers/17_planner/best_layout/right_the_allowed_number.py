"""As many as are allowed are asked, those with the smallest bound."""


def best_layout(question):
    known = {}
    L, H, batch = question.sizes.layers, question.sizes.heads, question.num_sequences
    for t in range(1, H + 1):
        for p in range(1, L + 1):
            dp, more = divmod(question.num_ranks, t * p)
            if more or H % t or L % p or not dp or batch % dp:
                continue
            for b in range(1, batch // dp + 1):
                if batch // dp % b:
                    continue
                for v in range(1, L // p + 1):
                    if (L // p) % v or (v > 1 and (p == 1 or batch // dp // b % p)):
                        continue
                    for way in ("full", "none"):
                        for shared in {False, t > 1}:
                            for zero in {0, int(dp > 1)}:
                                more = {"sequence": shared, "zero": zero, "recompute": way}
                                at = Layout(dp, t, p, rows=b, chunks=v, **more)
                                if question.fits(at):
                                    known[at] = question.at_least(at)
    most = max(150, len(known) // 10)
    return min(sorted(known, key=known.get)[:most], key=question.seconds)
