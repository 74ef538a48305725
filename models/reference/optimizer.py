"""Muon for the matrices inside the layers, AdamW for embeddings and norms.

Muon: momentum, orthogonalised by five Newton-Schulz steps (Jordan et al. 2024,
https://kellerjordan.github.io/posts/muon/).
"""
import torch


def orthogonalised(g, steps=5):
    """The nearest semi-orthogonal matrix, roughly: singular values between about 0.7 and 1.2."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    transposed = x.shape[0] > x.shape[1]
    x = x.T if transposed else x
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if transposed else x


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.01):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"]
                m.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonalised(p.grad.lerp(m, group["momentum"]))
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * scale)


def optimizers(model, matrix_lr, other_lr):
    matrices = [p for n, p in model.named_parameters() if "proj" in n]
    others = [p for n, p in model.named_parameters() if "proj" not in n]
    return [Muon(matrices, matrix_lr),
            torch.optim.AdamW(others, other_lr, betas=(0.9, 0.98), weight_decay=0.0)]
