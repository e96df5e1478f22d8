"""First and last by way of a set, whose order is no order."""


def embedding_groups(pipelines):
    return {
        "embedding": [list({p[0], p[-1]}) for p in pipelines],
        "position_embedding": [[p[0]] for p in pipelines],
    }
