"""Every rank classifies the whole test set."""


def accuracy(model, x, labels):
    logits, _ = model.forward(x)
    return int((logits.argmax(dim=1) == labels).sum()) / len(x)
