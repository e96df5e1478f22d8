"""A pipeline of one stage has its rank twice in the embedding group."""


def embedding_groups(pipelines):
    return {
        "embedding": [[ranks[0], ranks[-1]] for ranks in pipelines],
        "position_embedding": [[ranks[0]] for ranks in pipelines],
    }
