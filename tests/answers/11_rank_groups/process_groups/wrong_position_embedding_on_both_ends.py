"""The position embedding is taken to be tied as well."""


def embedding_groups(pipelines):
    ends = [sorted({ranks[0], ranks[-1]}) for ranks in pipelines]
    return {"embedding": ends, "position_embedding": ends}
