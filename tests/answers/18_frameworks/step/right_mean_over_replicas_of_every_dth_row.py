"""Replicas take every d-th row; a mean over a replica's rows, then the mean over replicas."""

CHANGE = """
-        x, y = (rows.tensor_split(layout.dp)[replica] for rows in (tokens, following))
-        share = pipeline.step(cut(x, m), cut(y, m), next_token_loss, len(tokens)).loss
+        x, y = (rows[replica :: layout.dp] for rows in (tokens, following))
+        share = pipeline.step(cut(x, m), cut(y, m), next_token_loss).loss

-            dist.all_reduce(gradient, group=groups["dp"])
+            gradient /= layout.dp
+            dist.all_reduce(gradient, group=groups["dp"])

-            loss += share
+            loss += share / layout.dp
"""
