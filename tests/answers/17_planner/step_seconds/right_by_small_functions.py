"""Each letter of the statement is a function; the last stage's turn is measured out."""


def step_seconds(sizes, at, machine, num_sequences):
    L, D, _, V, S = sizes
    C, W, t, p, v, b = machine.operations, machine.memory_rate, at.tp, at.pp, at.chunks, at.rows
    T, m, u = b * S, num_sequences / (at.dp * b), t if at.sequence else 1
    again = at.recompute == "full"

    def ring(axis, num_bytes):
        return ring_seconds(num_bytes, at.groups[axis], machine) if getattr(at, axis) > 1 else 0

    def P(k, n):
        return T * (2 * k * n / (0.7 * C) + 4 * (k + n) / W) + 4 * k * n / W

    F = P(D, 3 * D / t) + P(D / t, D) + P(D, 4 * D / t) + P(4 * D / t, D)
    A = 2 * T * S * D / (0.3 * C * t)
    E = T * D * (25 / u + 20 / t) / W
    K = (4 * F + 4.5 * A + 3 * E) if again else (3 * F + 3.5 * A + 2 * E)
    Q = (3 if again else 2) * 2 * ring("tp", 2 * T * D)
    G = 3 * P(D, V / t) + 22 * T * V / (t * W)
    stride = at.tp * at.dp
    within = machine.ranks_per_host % (stride * p) == 0
    J = 2 * T * D / t / (machine.inside if within else machine.card)
    if not at.sequence:
        J += ring("tp", 2 * T * D)
    N = parameters(sizes, at, False)
    parts = {
        "computing": m * K * L / p + m * G,
        "tp": m * Q * L / p,
        "pp": 0 if p == 1 else 2 * J * (m * v + p - 1),
        "idle": (p - 1) * (K + Q) * L / (p * v),
    }
    turn = sum(parts.values()) * v / (m * v + p - 1)
    messages = ring("dp", 4 * N) + ring("dp", 2 * N if at.zero else 4 * N)
    shown = 0.2 * messages if messages < turn else messages - 0.8 * turn
    return parts | {"gradients": shown, "optimizer": 30 * N / W / at.dp**at.zero}
